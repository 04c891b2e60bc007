/** Worlds made at random: in none of them is an invariant broken. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('600 worlds of faults, kills, clocks and odd records break no invariant', async () => {
  // In a program of its own: the test runner follows every promise, and the worlds would take more than twice as long.
  const args = ['test/sim/run.ts', '--seeds', '600', '--short']
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args).catch(error => error)
  assert.match(stdout + stderr, /^600 seeds, \d+ steps, 0 failed/m)
})
