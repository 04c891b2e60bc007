/**
 * A clock that runs several times as fast within a program: half a minute of its waiting is over in seconds, and its limits keep
 * their order. The calendar stays as it is unless it is stepped, and so does what PostgreSQL, SQLite or a socket waits for.
 */
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import promises from 'node:timers/promises'

const setting = 'TEST_CLOCK_SPEED'
const stepSetting = 'TEST_CLOCK_STEP'

/**
 * The environment of a program, to be started, whose clock runs `speed` times as fast. Its calendar is ahead by the milliseconds
 * that the file holds, if one is given: who changes it steps the clock.
 */
export function quickClock(speed: number, stepFile?: string): Record<string, string> {
  return {
    NODE_OPTIONS: `--import=${import.meta.url}`,
    [setting]: String(speed),
    ...(stepFile !== undefined && { [stepSetting]: stepFile }),
  }
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

const stepFile = process.env[stepSetting]
if (stepFile !== undefined) {
  const { now } = Date
  const elapsed = performance.now.bind(performance)
  let [ahead, lookedAt] = [0, Number.NEGATIVE_INFINITY]
  Date.now = () => {
    if (elapsed() - lookedAt > 20 * speed) {
      ahead = Number(readFileSync(stepFile, 'utf8'))
      lookedAt = elapsed()
    }
    return now() + ahead
  }
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, self) =>
      Reflect.construct(target, args.length === 0 ? [Date.now()] : args, self),
  })
}
