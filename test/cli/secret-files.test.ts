/** Settings whose value stands in a file. */
import assert from 'node:assert/strict'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { findNearest } from '../../src/cli/settings/nearest-setting.ts'
import { settingNames, settings, variableNames } from '../../src/cli/settings/settings.ts'
import { assertOneLine, createCli, unwrapped } from '../support/clients/cli.ts'

async function createWithFile(t: TestContext, text: string) {
  const cli = await createCli(t)
  const file = join(cli.folder, 'a-secret')
  await writeFile(file, text)
  return { ...cli, file }
}

describe('a secret in a file', { concurrency: 3 }, () => {
  it('is possible for every setting that can be a secret, and for no other setting', () => {
    const inFiles = settingNames.filter(name => variableNames.includes(`${name}_FILE`))
    assert.deepEqual(
      inFiles,
      settingNames.filter(name => 'isSecret' in settings[name]),
    )
    assert.ok(inFiles.includes('DATABASE_URL') && inFiles.includes('STRIPE_WEBHOOK_SECRET'))
    assert.ok(!variableNames.includes('PORT_FILE'))
  })

  for (const [end, name] of [
    ['', 'no newline'],
    ['\n', 'a newline'],
    ['\r\n', "Windows' newline"],
  ] as const)
    it(`gives the same value as the environment variable when the file ends with ${name}`, async t => {
      const cli = await createWithFile(t, `sqlite:from-file.db${end}`)
      const { code, stderr } = await cli.run(['migrate'], { env: { DATABASE_URL_FILE: cli.file } })
      assert.deepEqual([code, stderr], [0, ''])
      const status = await cli.run(['status'], { env: { DATABASE_URL: 'sqlite:from-file.db' } })
      assert.equal(status.code, 0, status.stderr)
    })

  it('loses only its last newline', async t => {
    const cli = await createWithFile(t, 'rk_test_canary\n\n')
    assertOneLine(
      await cli.run(['sync', '--once'], { env: { STRIPE_API_KEY_FILE: cli.file } }),
      /STRIPE_API_KEY, in the file \S+a-secret, must be a key that begins with sk_ or rk_\.$/m,
    )
  })

  it('is the key that Stripe receives', async t => {
    const sandbox = await startStripeSandbox({ invoices: 3 })
    t.after(() => sandbox.close())
    const cli = await createWithFile(t, 'sk_test_sandbox\n')
    const env = { STRIPE_API_KEY_FILE: cli.file, STRIPE_API_BASE: sandbox.address }
    const { code, stderr } = await cli.run(['sync', '--once'], { env })
    assert.equal(code, 0, stderr)
    await writeFile(cli.file, 'sk_test_other')
    assert.notEqual((await cli.run(['sync', '--once'], { env })).code, 0, 'the key is what the file says')
  })

  it('has less priority than a flag, and is ignored when its path is empty', async t => {
    const cli = await createWithFile(t, 'sqlite:a-folder-that-is-not-there/file.db')
    await writeFile(join(cli.folder, '.env'), `DATABASE_URL_FILE=${cli.file}\n`)
    assert.notEqual((await cli.run(['status'])).code, 0)
    const { code, stderr } = await cli.run(['migrate', '--database-url', 'sqlite:flag.db'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal((await cli.run(['migrate'], { env: { DATABASE_URL_FILE: '' } })).code, 0)
  })

  it('is refused when the setting also has a value of its own, and the message names both variables', async t => {
    const cli = await createWithFile(t, 'rk_test_canary')
    const env = { STRIPE_API_KEY: 'rk_test_canary', STRIPE_API_KEY_FILE: cli.file }
    const outcome = await cli.run(['sync', '--once'], { env })
    assertOneLine(outcome, /STRIPE_API_KEY and STRIPE_API_KEY_FILE are both set\. Remove one of them\./)
    const empty = await cli.run(['migrate'], {
      env: { DATABASE_URL: '', DATABASE_URL_FILE: cli.file.replace('a-secret', 'gone') },
    })
    assertOneLine(empty, /DATABASE_URL_FILE: the file \S+gone cannot be read/)
  })

  it('stops the command with one line when it is missing, empty, a folder or without a path', async t => {
    const cli = await createWithFile(t, '\n')
    await mkdir(join(cli.folder, 'folder'))
    for (const [path, message] of [
      [cli.file, /STRIPE_API_KEY_FILE: the file \S+a-secret is empty\. Write the value into it\./],
      [
        join(cli.folder, 'gone'),
        /STRIPE_API_KEY_FILE: the file \S+gone cannot be read \(ENOENT\)\. Create it/,
      ],
      [join(cli.folder, 'folder'), /the file \S+folder cannot be read \(EISDIR\)\. It is a folder/],
      ['rk_live_canary', /STRIPE_API_KEY_FILE must be the path of a file, which begins with \/\.$/m],
    ] as const) {
      const outcome = await cli.run(['sync', '--once'], { env: { STRIPE_API_KEY_FILE: path } })
      assertOneLine(outcome, message)
      assert.doesNotMatch(outcome.stderr, /canary/)
    }
  })

  it('stops the command with one line when it is not readable', {
    skip: process.getuid?.() === 0 && 'root may read every file',
  }, async t => {
    const cli = await createWithFile(t, 'rk_test_canary')
    await chmod(cli.file, 0)
    const outcome = await cli.run(['sync', '--once'], { env: { STRIPE_API_KEY_FILE: cli.file } })
    assertOneLine(outcome, /cannot be read \(EACCES\)\. Give this user permission to read it\./)
  })

  it('is checked by fatura doctor, which also reports misspelt names', async t => {
    const cli = await createWithFile(t, '')
    const env = { ADMIN_TOKEN_FILE: cli.file, STRIPE_API_KEYS_FILE: cli.file }
    const { code, stdout } = await cli.run(['doctor', '--sample', '0'], { env })
    assert.equal(code, 1)
    assert.match(unwrapped(stdout), /FAIL {2}Setting ADMIN_TOKEN +ADMIN_TOKEN_FILE: the file \S+ is empty/)
    assert.match(unwrapped(stdout), /STRIPE_API_KEYS_FILE is not a setting/)
    assert.equal(findNearest('STRIPE_API_KEYS_FILE', 0.15), 'STRIPE_API_KEY_FILE')
    assert.equal(findNearest('STRIPE_API_KEY_FILE', 0.15), null)
    assert.equal(findNearest('PORT_FILE', 0.15), null)
  })

  it('is named in the help by its variable', async t => {
    const { stdout } = await (await createCli(t)).run(['serve', '--help'])
    assert.match(stdout, /^STRIPE_API_KEY or STRIPE_API_KEY_FILE \(environment only\):$/m)
    assert.match(stdout.replace(/\s+/g, ' '), /\(env: DATABASE_URL or DATABASE_URL_FILE, default: /)
    assert.match(stdout.replace(/\s+/g, ' '), /\(env: PORT, default: 3000\)/)
  })
})
