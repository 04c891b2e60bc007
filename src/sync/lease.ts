/**
 * One process at a time writes as the connector. Whoever holds the lease shows it by beats; whoever waits takes over when
 * they stand still. No two clocks are compared, and what is committed does not depend on any: each transaction looks
 * whether the lease is still its own before it commits.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Lease } from '../store/connector-store.ts'
import { StoreError, StoreReplaced, type WriteStore } from '../store/store.ts'

export const renewEvery = 3_000
/** When the beats stood still for this long, as the one who waits has seen it, the holder is gone. */
export const takeOverAfter = 15_000
const lookEvery = 500
/** After this long without a write to the store, a line tells it, once. */
const tellKeptOutAfter = 2_000
/** How often it is told again that one waits. */
const tellEvery = 60_000

/** Another process is the connector by now: nothing that was under way here is committed. */
export class LeaseLost extends StoreError {
  constructor() {
    super(
      'Another process took over the synchronization of this store; what was under way here was not stored.',
    )
  }
}

export interface LeaseOptions {
  /** How this process is told to people. */
  holder: string
  /** Whether the holder is known to have ended, so that nobody need wait for its beats. */
  isGone(holder: string): boolean
  /** Whether to wait for a holder that lives; otherwise that is a `StoreError`. */
  wait: boolean
  log: Logger
  signal: AbortSignal
}

export interface HeldLease {
  epoch: number
  /** Aborted, with a `LeaseLost`, once the lease is another's; with a `StoreReplaced` once the store is another. */
  lost: AbortSignal
  lose(): void
  release(): Promise<void>
}

/** Resolves once this process is the connector. `store` should have no patience with locks: it is asked again anyway. */
export async function waitForLease(store: WriteStore, options: LeaseOptions): Promise<HeldLease> {
  const { holder, isGone, wait, log, signal } = options
  let seen = await store.readLease()
  let lookedAt = performance.now()
  let stillFor = 0
  let toldAt: number | null = null
  let keptOutAt: number | null = null
  let isToldKeptOut = false
  for (;;) {
    if (seen.holder === null || stillFor >= takeOverAfter || isGone(seen.holder)) {
      const answer = await unlessOutOfReach(store.takeLease(seen, holder).then(taken => ({ taken })))
      if (answer?.taken) return keepLease(store, answer.taken)
      keptOutAt = answer === null ? (keptOutAt ?? lookedAt) : null
      if (keptOutAt !== null && lookedAt - keptOutAt >= tellKeptOutAfter && !isToldKeptOut) {
        isToldKeptOut = true
        log.warn('waiting: another process writes to this store, or it is out of reach')
      }
      // It is another's by now, or a writer kept us out of the store: then it kept the holder's beats out, too.
      stillFor = 0
    } else if (!wait)
      throw new StoreError(
        `This store is being synchronized already: by ${seen.holder}. Stop that one, or let this one wait.`,
      )
    else if (toldAt === null || lookedAt - toldAt >= tellEvery) {
      log.warn({ holder: seen.holder }, 'waiting: another process synchronizes this store')
      toldAt = lookedAt
    }
    await sleep(lookEvery, undefined, { signal }).catch(() => signal.throwIfAborted())
    const lease = await unlessOutOfReach(store.readLease())
    const now = performance.now()
    const isStill = lease?.epoch === seen.epoch && lease.beats === seen.beats
    // Time in which we did not look ourselves, as when the whole machine slept, shows nothing.
    stillFor = isStill ? stillFor + Math.min(now - lookedAt, 2 * lookEvery) : 0
    lookedAt = now
    seen = lease ?? seen
  }
}

/** Beats until the lease is let go of, or lost. */
function keepLease(store: WriteStore, { epoch }: Lease): HeldLease {
  const lost = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const lose = (reason: StoreError = new LeaseLost()) => {
    end()
    lost.abort(reason)
  }
  const end = () => {
    isOver = true
    clearTimeout(timer)
  }
  const beat = async () => {
    const isHeld = await unlessOutOfReach(store.renewLease(epoch)).catch(whenReplaced(lose))
    if (isOver) return
    if (isHeld === false) lose()
    else timer = setTimeout(beat, isHeld === null ? lookEvery : renewEvery)
  }
  timer = setTimeout(beat, renewEvery)
  return {
    epoch,
    lost: lost.signal,
    lose,
    async release() {
      end()
      if (lost.signal.aborted) return
      await unlessOutOfReach(store.releaseLease(epoch)).catch(whenReplaced(() => {}))
    },
  }
}

/** The same store, which commits nothing once the lease is another's. */
export function fenceStore(store: WriteStore, lease: HeldLease): WriteStore {
  return {
    ...store,
    transaction: work =>
      store.transaction(async tx => {
        const result = await work(tx)
        if (await tx.holdsLease(lease.epoch)) return result
        lease.lose()
        throw new LeaseLost()
      }),
  }
}

/** Null when the store did not answer, or another writer kept it locked: it may be otherwise a moment later. */
async function unlessOutOfReach<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StoreError && !(error instanceof StoreReplaced)) return null
    throw error
  }
}

/** A store that was replaced does not come back: another is in its place. */
function whenReplaced(handle: (error: StoreReplaced) => void): (error: unknown) => void {
  return error => {
    if (!(error instanceof StoreReplaced)) throw error
    handle(error)
  }
}
