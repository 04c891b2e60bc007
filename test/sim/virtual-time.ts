/**
 * Virtual time: clocks, timers and chance of everything that runs between two calls of `begin` and `end` come from a seed. Each
 * process of the simulated world has a calendar of its own, and all share one monotonic clock. Outside of a simulated process,
 * timers are real.
 */
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import promises from 'node:timers/promises'
import type { Random } from '../../sandbox/random.ts'

/** A process of the simulated world. Nothing of a dead one ever goes on. */
export interface Process {
  name: string
  isDead: boolean
  /** Its calendar less the true time. */
  aheadMs: number
}

/** A call that waits for its turn. */
export interface Point {
  process: Process
  label: string
  go(): void
}

interface Timer {
  atMs: number
  process: Process
  run(): void
  ref(): Timer
  unref(): Timer
}

const real = {
  setTimeout: timers.setTimeout,
  clearTimeout: timers.clearTimeout,
  sleep: promises.setTimeout,
  yieldNow: promises.setImmediate,
  setImmediate: timers.setImmediate,
  calendar: Date.now,
  elapsed: performance.now.bind(performance),
  random: Math.random,
}

/** The time of the world that runs; null between two. */
let running: VirtualTime | null = null

export class VirtualTime {
  /** The true time, in milliseconds. Each step takes at least one: no two happen at the same moment. */
  nowMs: number
  /** The process whose code runs; null for the world's own. */
  current: Process | null = null
  points: Point[] = []
  private timers = new Set<Timer>()
  /** The true time at which a calendar first showed each moment. */
  private readonly shownAt = new Map<number, number>()
  readonly random: Random

  constructor(random: Random, startMs: number) {
    this.random = random
    this.nowMs = startMs
  }

  begin(): void {
    running = this
  }

  end(): void {
    running = null
  }

  calendar(): number {
    const { current, nowMs } = this
    if (current === null) return nowMs
    const shown = nowMs + current.aheadMs
    if (!this.shownAt.has(shown)) this.shownAt.set(shown, nowMs)
    return shown
  }

  /** The earliest true time at which a calendar showed this moment; null when none did. */
  trueTimeOf(shownMs: number): number | null {
    return this.shownAt.get(shownMs) ?? null
  }

  /** Resolves when the world lets this call go on. */
  wait(process: Process, label: string): Promise<void> {
    return new Promise(resolve => {
      if (!process.isDead) this.points.push({ process, label, go: resolve })
    })
  }

  addTimer(run: () => void, delayMs: number, process: Process): Timer {
    const timer: Timer = {
      atMs: this.nowMs + Math.max(0, Math.ceil(delayMs)),
      process,
      run,
      ref: () => timer,
      unref: () => timer,
    }
    this.timers.add(timer)
    return timer
  }

  clearTimer(timer: Timer): void {
    this.timers.delete(timer)
  }

  /** Milliseconds until the next timer; null without any. */
  untilNextTimer(): number | null {
    let next = Number.POSITIVE_INFINITY
    for (const { atMs } of this.timers) if (atMs < next) next = atMs
    return next === Number.POSITIVE_INFINITY ? null : Math.max(0, next - this.nowMs)
  }

  /** Lets a call go on until everything waits again. */
  async release(point: Point): Promise<void> {
    this.points.splice(this.points.indexOf(point), 1)
    await this.runAs(point.process, point.go)
  }

  /** Lets time pass, and fires the timers that are due by then, in their order. */
  async pass(milliseconds: number): Promise<void> {
    this.nowMs += milliseconds
    const due = [...this.timers].filter(({ atMs }) => atMs <= this.nowMs).sort((a, b) => a.atMs - b.atMs)
    for (const timer of due) if (this.timers.delete(timer)) await this.runAs(timer.process, timer.run)
  }

  /** Ends a process where it is: whatever it waits for never comes. */
  kill(process: Process): void {
    process.isDead = true
    this.points = this.points.filter(point => point.process !== process)
    for (const timer of this.timers) if (timer.process === process) this.timers.delete(timer)
  }

  async runAs(process: Process, run: () => void): Promise<void> {
    if (process.isDead) return
    this.nowMs++
    this.current = process
    run()
    await settle()
    this.current = null
  }
}

/** Calls that leave the program, as those of a database do: they end after more than one turn of its loop. */
class RealCalls {
  private underWay = 0
  private waiting: (() => void)[] = []

  async run<T>(call: () => T | Promise<T>): Promise<T> {
    this.underWay++
    try {
      return await call()
    } finally {
      if (--this.underWay === 0) for (const resolve of this.waiting.splice(0)) resolve()
    }
  }

  areOver(): boolean {
    return this.underWay === 0
  }

  /** Resolves when all are over. One may wait for virtual time, as for a pause before it is done again: nobody waits for it longer. */
  ended(patienceMs: number): Promise<unknown> {
    const over = new Promise<void>(resolve => this.waiting.push(resolve))
    return Promise.race([over, real.sleep(patienceMs, undefined, { ref: false })])
  }
}

export const realCalls = new RealCalls()
const realPatienceMs = 2_000

/** Resolves when nothing goes on any more without a point or a timer. */
export async function settle(): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    await new Promise<void>(resolve => real.setImmediate(resolve))
    if (realCalls.areOver()) return
    await realCalls.ended(realPatienceMs)
    if (!realCalls.areOver()) return
  }
}

const ofProcess = () => (running === null || running.current === null ? null : running)

function sleep(delayMs = 0, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> {
  const time = ofProcess()
  if (time === null) return real.sleep(delayMs, value, options)
  const { signal } = options
  return new Promise((resolve, reject) => {
    const abort = () => {
      time.clearTimer(timer)
      reject(signal?.reason)
    }
    const timer = time.addTimer(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve(value)
      },
      delayMs,
      time.current as Process,
    )
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}

Date.now = () => running?.calendar() ?? real.calendar()
Math.random = () => (running ? running.random() : real.random())
Object.defineProperty(performance, 'now', { value: () => ofProcess()?.nowMs ?? real.elapsed() })
globalThis.setTimeout = timers.setTimeout = Object.assign(
  (run: (...given: unknown[]) => void, delayMs = 0, ...given: unknown[]) => {
    const time = ofProcess()
    if (time === null) return real.setTimeout(run, delayMs, ...given)
    return time.addTimer(() => run(...given), delayMs, time.current as Process)
  },
  real.setTimeout,
) as unknown as typeof setTimeout
globalThis.clearTimeout = timers.clearTimeout = ((timer: never) => {
  if (timer && typeof timer === 'object' && 'atMs' in timer) running?.clearTimer(timer)
  else real.clearTimeout(timer)
}) as typeof clearTimeout
promises.setTimeout = sleep as typeof promises.setTimeout
promises.setImmediate = ((value: unknown) => {
  const time = ofProcess()
  return time === null ? real.yieldNow(value) : time.wait(time.current as Process, 'yield').then(() => value)
}) as typeof promises.setImmediate
syncBuiltinESMExports()
