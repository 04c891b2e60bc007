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
  const later = "setInterval(() => { throw new Error('on purpose') }, 100)"
  const runs = [
    {
      // The second test never ends: an error that nobody catches ends it.
      bodies: ["throw new Error('on purpose')", `return new Promise(() => ${later})`],
      // With a PostgreSQL that is started for it and stopped: what is stopped last must not decide how the run ends.
      server: {},
      code: 1,
    },
    { bodies: [''], server: { TEST_POSTGRES_URL: given }, code: 0 },
  ]
  await Promise.all(
    runs.map(async ({ bodies, server, code }) => {
      const files = bodies.map((_, index) => join(folder, `exit-${code}-${index}.test.mjs`))
      for (const [index, file] of files.entries())
        await writeFile(file, `import { test } from 'node:test'\ntest('one', () => { ${bodies[index]} })\n`)
      const script = join(folder, `exit-${code}.mjs`)
      await writeFile(
        script,
        `import { runFiles } from '${root}scripts/run-files.ts'
        const parts = [{ files: ${JSON.stringify(files)}, atATime: 2 }]
        process.exitCode = (await runFiles(parts)) ? 0 : 1`,
      )
      const child = spawn(process.execPath, [script], {
        cwd: root,
        env: { ...env, ...server },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      const [[status], stdout] = await Promise.all([once(child, 'close'), text(child.stdout)])
      assert.equal(status, code, stdout)
      assert.match(stdout, code === 0 ? /^ℹ pass 1$/m : /^ℹ fail 2$/m)
      if (code === 1) assert.match(stdout, /on purpose/)
    }),
  )
})
