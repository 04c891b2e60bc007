/** The test command itself: a run with a failed test must fail. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFolder } from '../support/engines.ts'

test('a run ends with a failure when a test fails, and only then, with its own PostgreSQL started and stopped', async t => {
  const folder = await createFolder(t)
  const root = new URL('../..', import.meta.url).pathname
  const { TEST_POSTGRES_URL: _server, NODE_TEST_CONTEXT: _context, ...env } = process.env
  for (const [body, code] of [
    ["throw new Error('on purpose')", 1],
    ['', 0],
  ] as const) {
    const file = join(folder, `exit-${code}.test.mjs`)
    await writeFile(file, `import { test } from 'node:test'\ntest('one', () => { ${body} })\n`)
    const setup = '--test-global-setup=./test/support/postgres-server.ts'
    const { status, stdout } = spawnSync(process.execPath, ['--test', setup, file], { cwd: root, env })
    assert.equal(status, code, String(stdout))
  }
})
