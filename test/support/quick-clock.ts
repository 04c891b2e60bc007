/**
 * A clock that runs several times as fast within a program: half a minute of its waiting is over in seconds, and its limits keep
 * their order. The calendar stays as it is, and so does what PostgreSQL, SQLite or a socket waits for.
 */
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import promises from 'node:timers/promises'

const setting = 'TEST_CLOCK_SPEED'

/** The environment of a program, to be started, whose clock runs `speed` times as fast. */
export function quickClock(speed: number): Record<string, string> {
  return { NODE_OPTIONS: `--import=${import.meta.url}`, [setting]: String(speed) }
}

// A program that was started so, and each of its threads, runs this file before all others.
const speed = Number(process.env[setting] ?? 1)
if (speed !== 1) {
  const { setTimeout: call } = timers
  const { setTimeout: wait } = promises
  const now = performance.now.bind(performance)
  Object.defineProperty(performance, 'now', { value: () => now() * speed })
  globalThis.setTimeout = timers.setTimeout = Object.assign(
    (run: (...args: unknown[]) => void, delay = 0, ...args: unknown[]) => call(run, delay / speed, ...args),
    call,
  ) as typeof call
  promises.setTimeout = ((delay = 0, ...args: []) => wait(delay / speed, ...args)) as typeof wait
  syncBuiltinESMExports()
}
