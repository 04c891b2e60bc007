/** Worlds made at random: in none of them is an invariant broken. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { planted } from './planted.ts'

/** In a program of its own: the test runner follows every promise, and the worlds would take more than twice as long. */
async function assertHolds(seeds: number, ...more: string[]): Promise<void> {
  const args = ['test/sim/run.ts', '--seeds', String(seeds), '--short', ...more]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args).catch(error => error)
  assert.match(stdout + stderr, new RegExp(`^${seeds} seeds, \\d+ steps, 0 failed`, 'm'))
}

describe('the simulator finds no broken invariant', () => {
  test('in 300 worlds with faults, kills, clock changes and invalid records', () => assertHolds(300))

  test('in 20 worlds on a real PostgreSQL', () => assertHolds(20, '--postgres'))
})

test('each planted fault of the simulator changes exactly one place in its file', () => {
  for (const { name, file, from } of planted) {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    assert.equal(source.split(from).length, 2, `${name}: ${file}`)
  }
})
