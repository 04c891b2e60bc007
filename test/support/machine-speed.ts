/** Bounds in time that hold on any machine: measured against the machine that the test runs on, at the moment it runs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'

/** A start of Node on the machine that the bounds were written on, in milliseconds. */
const usualStartMs = 60

/**
 * How much slower than usual this machine is right now; never below 1. The calibrating call is the start of a process: it computes,
 * reads files and waits for a core, as the program under test does.
 */
export function measureSlowness(): number {
  const starts = Array.from({ length: 3 }, () => {
    const began = performance.now()
    spawnSync(process.execPath, ['--eval', '0'])
    return performance.now() - began
  })
  return Math.max(1, Math.min(...starts) / usualStartMs)
}

/** A bound in milliseconds that was written for the usual machine, for this one. */
export function onThisMachine(boundMs: number): number {
  return boundMs * measureSlowness()
}

/** Asserts that it took less than the bound on this machine. The machine is measured only when the bound itself does not hold. */
export function assertWithin(tookMs: number, boundMs: number): void {
  if (tookMs < boundMs) return
  const bound = onThisMachine(boundMs)
  assert.ok(tookMs < bound, `took ${tookMs.toFixed(0)} ms, and ${bound.toFixed(0)} ms are allowed here`)
}
