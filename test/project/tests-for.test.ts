/** `npm run tests-for FILE`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { findTests } from '../../scripts/tests-for.ts'

const root = join(import.meta.dirname, '../..')

function ask(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts/tests-for.ts'), ...args],
    { cwd: root, encoding: 'utf8' },
  )
  return { status, lines: stdout.split('\n'), stderr }
}

test('tests-for lists direct tests of a file before indirect ones', () => {
  const [first, ...others] = findTests('src/operations/reconcile/difference-kinds.ts')
  assert.deepEqual(first, { test: 'test/operations/reconcile/difference-kinds.test.ts', steps: 1 })
  const steps = others.map(each => each.steps)
  assert.ok(steps.length > 0 && steps.every(each => each >= 1))
  assert.deepEqual(
    steps,
    steps.toSorted((a, b) => a - b),
  )
})

test('tests-for follows programs that a test starts, and files that the code reads', () => {
  const testsOf = (path: string) => findTests(path).map(each => each.test)
  assert.ok(testsOf('src/cli/commands/webhook.ts').includes('test/cli/webhook.test.ts'))
  assert.ok(testsOf('src/store/postgres/functions.sql').includes('test/store/postgres.test.ts'))
  assert.ok(testsOf('test/support/databases/write-endlessly.ts').length > 0)
})

test('tests-for shortens a long list without --all, and explains how to see the rest', () => {
  const short = ask('src/domain/invoice.ts').lines
  const whole = ask('--all', 'src/domain/invoice.ts').lines
  assert.ok(short.length < whole.length)
  assert.match(
    short.at(-3) ?? '',
    /^… and \d+ farther away: npm run tests-for -- --all src\/domain\/invoice\.ts$/,
  )
})

test('tests-for refuses a path without a file in one line', () => {
  const { status, stderr } = ask('src/nothing.ts')
  assert.equal(status, 1)
  assert.match(stderr, /^There is no file 'src\/nothing\.ts'\. Usage: [^\n]+\n$/)
})
