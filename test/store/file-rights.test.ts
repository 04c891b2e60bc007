/** A store's file that this user may not use: the message says what is wrong, and for whom. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { type Cli, createCli, entryPoint } from '../support/clients/cli.ts'
import { makeInvoice } from '../support/worlds/records.ts'

/** Root may do everything, unless it gives up the right to pass over modes. Another user may not reach this checkout. */
const obeying =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : ['env']

function run({ folder }: Cli, ...args: string[]) {
  const [command = '', ...first] = [...obeying, process.execPath, entryPoint, ...args]
  const { status, stderr, error } = spawnSync(command, first, {
    ...{ cwd: folder, encoding: 'utf8', timeout: 600_000 },
    env: { PATH: process.env.PATH },
  })
  assert.equal(status, 1, `${error} ${stderr}`)
  assert.match(stderr, /^fatura: [^\n]+\n$/)
  return stderr
}

describe('a database file of SQLite', {
  skip: process.platform === 'win32' && 'rights are others there',
}, () => {
  it('without read permission is reported as such, not as a missing folder', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice({ id: 'in_1' }))
    const folder = dirname(cli.database)
    await chmod(cli.folder, 0o755)

    await chmod(folder, 0o755)
    await chmod(cli.database, 0o000)
    assert.match(
      run(cli, 'status'),
      /data\/fatura\.db: this user may not read it\. Let the user with uid \d+/,
    )
    await chmod(cli.database, 0o600)
    await chmod(folder, 0o600)
    for (const command of ['status', 'migrate'])
      assert.match(run(cli, command), /Cannot reach the database .*: this user may not enter its folder/)
    await chmod(folder, 0o700)
  })

  it('is reported when its folder is not writable, or when it is a folder itself', async t => {
    const cli = await createCli(t)
    await chmod(cli.folder, 0o555)
    await mkdir(join(cli.folder, 'closed'), { mode: 0o555 }).catch(() => {})
    assert.match(
      run(cli, 'migrate', '--database-url', 'sqlite:new.db'),
      /new\.db: this user may not write into its folder/,
    )
    assert.match(run(cli, 'status', '--database-url', 'sqlite:.'), /database \. is a folder/)
    await chmod(cli.folder, 0o700)
  })
})
