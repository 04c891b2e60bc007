/**
 * A clock that stands still until a test moves it. Timers, `performance.now` and `Date.now` of this process follow it. Sockets,
 * files, databases and Node's own HTTP timeouts do not: they take the time that they take.
 */
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'
import timers from 'node:timers'
import promises from 'node:timers/promises'

export interface StoppedClock {
  /** Milliseconds that have passed since the clock was stopped. */
  readonly passedMs: number
  /** Lets so much time pass: each timer fires at its moment, and what it starts goes on before the next one fires. */
  pass(ms: number): Promise<void>
}

interface Timer {
  atMs: number
  everyMs: number | null
  run(): void
  ref(): Timer
  unref(): Timer
  hasRef(): boolean
  refresh(): Timer
  close(): Timer
  [Symbol.toPrimitive](): number
  [Symbol.dispose](): void
}

const real = {
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  setInterval: timers.setInterval,
  clearInterval: timers.clearInterval,
  setImmediate: timers.setImmediate,
  sleep: promises.setTimeout,
  calendar: Date.now,
  elapsed: performance.now,
  timeout: AbortSignal.timeout,
}

/** Resolves when everything that needs no timer has gone on: callbacks of sockets that are ready, promises, immediates. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise(resolve => real.setImmediate(resolve))
}

/** Waits for what takes real time, such as an answer of another process, while the clock stands still. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await real.sleep(2)
}

/** Stops the clock until the end of the test. Nothing else may run in this process meanwhile: no concurrent test. */
export function stopClock(t: TestContext): StoppedClock {
  const [startMs, startOfCalendar] = [Math.floor(performance.now()), Date.now()]
  const waiting = new Set<Timer>()
  let passedMs = 0

  const now = () => startMs + passedMs
  function add(run: () => void, delayMs: number, everyMs: number | null): Timer {
    const timer: Timer = {
      atMs: now() + Math.max(1, delayMs),
      everyMs,
      run,
      ref: () => timer,
      unref: () => timer,
      hasRef: () => false,
      refresh() {
        timer.atMs = now() + Math.max(1, delayMs)
        return timer
      },
      close() {
        waiting.delete(timer)
        return timer
      },
      [Symbol.toPrimitive]: () => 0,
      [Symbol.dispose]: () => void waiting.delete(timer),
    }
    waiting.add(timer)
    return timer
  }
  const clear = (clearReal: (timer: never) => void) => (timer: unknown) => {
    if (!waiting.delete(timer as Timer)) clearReal(timer as never)
  }
  const stopped = {
    setTimeout: (run: (...given: unknown[]) => void, delayMs = 0, ...given: unknown[]) =>
      add(() => run(...given), delayMs, null),
    setInterval: (run: (...given: unknown[]) => void, delayMs = 0, ...given: unknown[]) =>
      add(() => run(...given), delayMs, delayMs),
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
  }

  Object.assign(globalThis, stopped)
  Object.assign(timers, stopped)
  Object.assign(promises, { setTimeout: sleep })
  Object.defineProperty(performance, 'now', { value: now, configurable: true, writable: true })
  // Timers may be due between two milliseconds; the calendar knows whole ones.
  Date.now = () => startOfCalendar + Math.floor(passedMs)
  AbortSignal.timeout = delayMs => {
    const late = new AbortController()
    add(
      () => late.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
      delayMs,
      null,
    )
    return late.signal
  }
  syncBuiltinESMExports()

  function sleep(delayMs = 0, value?: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = add(
        () => {
          signal?.removeEventListener('abort', abort)
          resolve(value)
        },
        delayMs,
        null,
      )
      const abort = () => {
        waiting.delete(timer)
        reject(signal?.reason)
      }
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort, { once: true })
    })
  }

  t.after(() => {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = real
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval })
    Object.assign(timers, { setTimeout, clearTimeout, setInterval, clearInterval })
    Object.assign(promises, { setTimeout: real.sleep })
    Object.defineProperty(performance, 'now', { value: real.elapsed, configurable: true, writable: true })
    Date.now = real.calendar
    AbortSignal.timeout = real.timeout
    syncBuiltinESMExports()
  })

  return {
    get passedMs() {
      return passedMs
    },
    async pass(ms) {
      const end = now() + ms
      await settle()
      for (;;) {
        let next: Timer | null = null
        for (const timer of waiting)
          if (timer.atMs <= end && timer.atMs < (next?.atMs ?? Number.POSITIVE_INFINITY)) next = timer
        if (next === null) break
        passedMs = Math.max(passedMs, next.atMs - startMs)
        if (next.everyMs === null) waiting.delete(next)
        else next.atMs += Math.max(1, next.everyMs)
        next.run()
        await settle()
      }
      passedMs = end - startMs
      await settle()
    },
  }
}
