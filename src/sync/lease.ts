/**
 * The lease allows one process to write to a store. The holder keeps the lease by
 * heartbeats. No clocks are compared: each transaction checks the lease before it commits.
 */
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Lease } from '../store/connector-store.ts'
import { StoreError, StoreReplaced, type WriteStore } from '../store/store.ts'
import { checkPosition, type LeasePosition, type WrittenPlace } from './written-place.ts'

export const renewEveryMs = 3_000
/** Time without a heartbeat after which a waiting process takes over the lease. The waiting process measures the time itself. */
export const takeOverAfterMs = 15_000
const pollEveryMs = 500
/** Time without access to the store after which one warning is logged. */
const warnKeptOutAfterMs = 2_000
const warnEveryMs = 60_000

/** Another process took the lease. Transactions under way in this process are not committed. */
export class LeaseLost extends StoreError {
  constructor() {
    super(
      'Another process took over the synchronization of this store. The unfinished work of this process was not stored.',
    )
  }
}

/** Names this process as the holder of the lease. The name is for people only and decides nothing. */
export function nameProcess(): string {
  return `process ${process.pid} on ${hostname()}`
}

export interface LeaseOptions {
  /** The last commit of this process. The caller passes the same object again when it opens the store again. */
  place: WrittenPlace
  holder: string
  /** True waits for a living holder. False throws a `StoreError` as soon as the holder shows a heartbeat. */
  wait: boolean
  log: Logger
  signal: AbortSignal
}

/** Resolves once this process holds the lease. `store` should not wait for locks, because the lease is polled anyway. */
export async function waitForLease(store: WriteStore, options: LeaseOptions): Promise<HeldLease> {
  const { holder, wait, log, signal, place } = options
  // The last commit is read once, because this process writes nothing while it waits.
  const written = place.get()
  let seen = await store.readLease()
  let polledAt = performance.now()
  let stillFor = 0
  let isAlive = false
  let warnedAt: number | null = null
  let keptOutAt: number | null = null
  let isKeptOutLogged = false
  for (;;) {
    checkPosition(seen, written)
    if (seen.holder === null || stillFor >= takeOverAfterMs) {
      const answer = await unlessOutOfReach(store.takeLease(seen, holder).then(taken => ({ taken })))
      if (answer?.taken) return new HeldLease(store, answer.taken, place)
      keptOutAt = answer === null ? (keptOutAt ?? polledAt) : null
      if (keptOutAt !== null && polledAt - keptOutAt >= warnKeptOutAfterMs && !isKeptOutLogged) {
        isKeptOutLogged = true
        log.warn('waiting: the store is out of reach, or another process writes to it')
      }
      // Either another process took the lease, or a writer locked the store and blocked the holder's heartbeats as well.
      stillFor = 0
    } else if (!wait) {
      if (isAlive)
        throw new StoreError(
          `This store is already synchronized by ${seen.holder}. Stop that process, or run this command when it has ended.`,
        )
    } else if (warnedAt === null || polledAt - warnedAt >= warnEveryMs) {
      log.warn({ holder: seen.holder }, 'waiting: another process synchronizes this store')
      warnedAt = polledAt
    }
    await sleep(pollEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    const lease = await unlessOutOfReach(store.readLease())
    const now = performance.now()
    const isStill = lease?.epoch === seen.epoch && lease.beats === seen.beats
    isAlive = lease !== null && !isStill
    // Time in which this process did not poll does not count, for example while the machine slept.
    stillFor = isStill ? stillFor + Math.min(now - polledAt, 2 * pollEveryMs) : 0
    polledAt = now
    seen = lease ?? seen
  }
}

/** The lease while this process holds it. Heartbeats go on until `release`, or until the lease is lost. */
export class HeldLease {
  readonly epoch: number
  private readonly store: WriteStore
  private readonly life: string
  private readonly place: WrittenPlace
  private readonly ending = new AbortController()
  private timer: NodeJS.Timeout | undefined
  private isOver = false

  constructor(store: WriteStore, { epoch, beats, life }: Lease, place: WrittenPlace) {
    this.store = store
    this.epoch = epoch
    this.life = life
    this.place = place
    this.record(beats)
    this.beatIn(renewEveryMs)
  }

  /**
   * Aborted with a `LeaseLost` when another process holds the lease. Aborted with a
   * `StoreReplaced` or a `StoreWentBack` when the store is another one or an older state.
   */
  get lost(): AbortSignal {
    return this.ending.signal
  }

  lose(reason: StoreError = new LeaseLost()): void {
    this.end()
    this.ending.abort(reason)
  }

  /** The last commit of this process. */
  written(): LeasePosition | null {
    return this.place.get()
  }

  /** Loses the lease and throws when another process holds it, or when the store lacks an earlier commit of this process. */
  check(beats: number | null, written: LeasePosition | null): void {
    try {
      if (beats === null) throw new LeaseLost()
      checkPosition({ epoch: this.epoch, beats: beats - 1, life: this.life }, written)
    } catch (error) {
      this.lose(error as StoreError)
      throw error
    }
  }

  record(beats: number): void {
    this.place.record({ epoch: this.epoch, beats, life: this.life })
  }

  async release(): Promise<void> {
    this.end()
    if (this.lost.aborted) return
    await unlessOutOfReach(this.store.releaseLease(this.epoch)).catch(whenReplaced(() => {}))
  }

  private beatIn(milliseconds: number): void {
    this.timer = setTimeout(() => this.beat(), milliseconds)
  }

  private async beat(): Promise<void> {
    const written = this.written()
    const renewed = this.store.renewLease(this.epoch).then(beats => ({ beats }))
    const answer = await unlessOutOfReach(renewed).catch(whenReplaced(error => this.lose(error)))
    if (this.isOver) return
    if (answer) {
      try {
        this.check(answer.beats, written)
      } catch {
        return
      }
      this.record(Number(answer.beats))
    }
    this.beatIn(answer ? renewEveryMs : pollEveryMs)
  }

  private end(): void {
    this.isOver = true
    clearTimeout(this.timer)
  }
}

/** Returns a store that commits nothing after another process took the lease, or after the store went back in time. */
export function fenceStore(store: WriteStore, lease: HeldLease): WriteStore {
  return {
    ...store,
    async transaction(work) {
      const { result, beats } = await store.transaction(async tx => {
        const result = await work(tx)
        const written = lease.written()
        const beats = await tx.beatLease(lease.epoch)
        lease.check(beats, written)
        return { result, beats }
      })
      lease.record(Number(beats))
      return result
    },
  }
}

/** Resolves with null when the store did not answer, or when another writer kept the store locked. */
async function unlessOutOfReach<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StoreError && !(error instanceof StoreReplaced)) return null
    throw error
  }
}

function whenReplaced(handle: (error: StoreReplaced) => void): (error: unknown) => void {
  return error => {
    if (!(error instanceof StoreReplaced)) throw error
    handle(error)
  }
}
