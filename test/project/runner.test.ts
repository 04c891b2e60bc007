/** The test command itself: a run with a failed test must fail. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createFolder } from '../support/engines.ts'

test('a run ends with a failure when a test fails, and only then', async t => {
  const folder = await createFolder(t)
  const root = new URL('../..', import.meta.url).pathname
  const { TEST_POSTGRES_URL: given = '', NODE_TEST_CONTEXT: _context, ...env } = process.env
  const setup = '--test-global-setup=./test/support/postgres-server.ts'
  const runs = [
    // With a PostgreSQL that is started for it and stopped: what is stopped last must not decide how the run ends.
    { body: "throw new Error('on purpose')", options: [setup], server: {}, code: 1 },
    { body: '', options: [setup], server: { TEST_POSTGRES_URL: given }, code: 0 },
    // A test that never ends, and an error that nobody catches.
    {
      body: "return new Promise(() => setInterval(() => { throw new Error('on purpose') }, 100))",
      options: ['--import=./test/support/quick-hooks.ts'],
      server: {},
      code: 1,
    },
  ]
  await Promise.all(
    runs.map(async ({ body, options, server, code }, index) => {
      const file = join(folder, `${index}.test.mjs`)
      await writeFile(file, `import { test } from 'node:test'\ntest('one', () => { ${body} })\n`)
      const child = spawn(process.execPath, ['--test', ...options, file], {
        cwd: root,
        env: { ...env, ...server },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      const [[status], stdout] = await Promise.all([once(child, 'close'), text(child.stdout)])
      assert.equal(status, code, stdout)
      assert.match(stdout, code === 0 ? /^# pass 1$|^ℹ pass 1$/m : /on purpose/)
    }),
  )
})
