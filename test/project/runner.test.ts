/** The test command itself: a run with a failed test must fail, and one of root's needs no open folder. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createFolder } from '../support/databases/engines.ts'
import { makeReachable } from '../support/databases/postgres-server.ts'

test('the test runner ends with a failure exactly when a test fails', async t => {
  const folder = await createFolder(t)
  const root = new URL('../..', import.meta.url).pathname
  const { TEST_POSTGRES_URL: given = '', NODE_TEST_CONTEXT: _context, ...env } = process.env
  const runs = [
    // With a PostgreSQL that is started for it and stopped: what is stopped last must not decide how the run ends.
    { body: "throw new Error('on purpose')", server: {}, code: 1 },
    { body: '', server: { TEST_POSTGRES_URL: given }, code: 0 },
  ]
  await Promise.all(
    runs.map(async ({ body, server, code }) => {
      const file = join(folder, `exit-${code}.test.mjs`)
      await writeFile(file, `import { test } from 'node:test'\ntest('one', () => { ${body} })\n`)
      const setup = '--test-global-setup=./test/support/databases/postgres-server.ts'
      const child = spawn(process.execPath, ['--test', setup, file], {
        cwd: root,
        env: { ...env, ...server },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [[status], stdout] = await Promise.all([once(child, 'close'), text(child.stdout)])
      assert.equal(status, code, stdout)
      assert.match(stdout, code === 0 ? /^# pass 1$|^ℹ pass 1$/m : /on purpose/)
    }),
  )
})

test('the test runner as root runs PostgreSQL as another user, from a folder for root only', {
  skip: process.getuid?.() !== 0 && 'only root runs it as another user',
}, async t => {
  const folder = await createFolder(t)
  // As after an installation with a umask of 077.
  const program = join(folder, 'native/bin/postgres')
  await mkdir(join(folder, 'native/bin'), { recursive: true })
  await writeFile(program, '#!/bin/sh\nexec cat "$(dirname "$0")/../text"\n', { mode: 0o700 })
  await writeFile(join(folder, 'native/text'), 'PostgreSQL', { mode: 0o600 })
  const run = (path: string) => spawnSync(path, { uid: 65_534, gid: 65_534, encoding: 'utf8' })
  await chmod(folder, 0o700)
  assert.equal((run(program).error as NodeJS.ErrnoException | undefined)?.code, 'EACCES')
  const copy = makeReachable(folder)
  assert.equal(run(join(copy, 'native/bin/postgres')).stdout, 'PostgreSQL')
  assert.equal(makeReachable(copy), copy, 'what others get to is not copied')
})
