/** The lease of the connector: one process writes, kept by heartbeats. No clocks are compared: each transaction checks the lease before it commits. */
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Lease } from '../store/connector-store.ts'
import { StoreError, StoreReplaced, type WriteStore } from '../store/store.ts'
import { checkPlace, type Place, type WrittenPlace } from './written-place.ts'

export const renewEveryMs = 3_000
/** After this long without a heartbeat, as a waiting process has seen it, the holder is gone. */
export const takeOverAfterMs = 15_000
const pollEveryMs = 500
/** After this long without access to the store, a warning is logged once. */
const warnKeptOutAfterMs = 2_000
const warnEveryMs = 60_000

/** Another process took the lease: nothing that was under way here is committed. */
export class LeaseLost extends StoreError {
  constructor() {
    super(
      'Another process took over the synchronization of this store; what was under way here was not stored.',
    )
  }
}

/** The name of this process as a holder. Only people read it: no process is judged by its name. */
export function nameProcess(): string {
  return `process ${process.pid} on ${hostname()}`
}

export interface LeaseOptions {
  /** What this process wrote to the store before; kept by the caller when it opens the store again. */
  place: WrittenPlace
  holder: string
  /** Whether to wait for a living holder. Otherwise it is a `StoreError` as soon as the holder is seen to live. */
  wait: boolean
  log: Logger
  signal: AbortSignal
}

export type HeldLease = ReturnType<typeof keepLease>

/** Resolves once this process holds the lease. `store` should not wait for locks: it is polled anyway. */
export async function waitForLease(store: WriteStore, options: LeaseOptions): Promise<HeldLease> {
  const { holder, wait, log, signal, place } = options
  // This process writes nothing while it waits.
  const written = place.get()
  let seen = await store.readLease()
  let polledAt = performance.now()
  let stillFor = 0
  let isAlive = false
  let warnedAt: number | null = null
  let keptOutAt: number | null = null
  let isKeptOutLogged = false
  for (;;) {
    checkPlace(seen, written)
    if (seen.holder === null || stillFor >= takeOverAfterMs) {
      const answer = await unlessOutOfReach(store.takeLease(seen, holder).then(taken => ({ taken })))
      if (answer?.taken) return keepLease(store, answer.taken, place)
      keptOutAt = answer === null ? (keptOutAt ?? polledAt) : null
      if (keptOutAt !== null && polledAt - keptOutAt >= warnKeptOutAfterMs && !isKeptOutLogged) {
        isKeptOutLogged = true
        log.warn('waiting: another process writes to this store, or it is out of reach')
      }
      // Another process took it, or a writer locked the store: then it kept the holder's heartbeats out, too.
      stillFor = 0
    } else if (!wait) {
      if (isAlive)
        throw new StoreError(
          `This store is being synchronized already: by ${seen.holder}. Stop that one, or let this one wait.`,
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
    // Time in which this process did not poll, as when the machine slept, does not count.
    stillFor = isStill ? stillFor + Math.min(now - polledAt, 2 * pollEveryMs) : 0
    polledAt = now
    seen = lease ?? seen
  }
}

function keepLease(store: WriteStore, { epoch, beats, life }: Lease, place: WrittenPlace) {
  place.note({ epoch, beats, life })
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
  /** Ends the lease when another process has it, or the store has less than was written before it was asked. */
  const check = (beats: number | null, written: Place | null) => {
    try {
      if (beats === null) throw new LeaseLost()
      checkPlace({ epoch, beats: beats - 1, life }, written)
    } catch (error) {
      lose(error as StoreError)
      throw error
    }
  }
  const note = (beats: number) => place.note({ epoch, beats, life })
  const beat = async () => {
    const written = place.get()
    const answer = await unlessOutOfReach(store.renewLease(epoch).then(beats => ({ beats }))).catch(
      whenReplaced(lose),
    )
    if (isOver) return
    if (answer) {
      try {
        check(answer.beats, written)
      } catch {
        return
      }
      note(Number(answer.beats))
    }
    timer = setTimeout(beat, answer ? renewEveryMs : pollEveryMs)
  }
  timer = setTimeout(beat, renewEveryMs)
  return {
    epoch,
    /** Aborted with a `LeaseLost` once another process holds the lease; with a `StoreReplaced` or a `StoreWentBack` once the store is another. */
    lost: lost.signal,
    lose,
    written: () => place.get(),
    check,
    note,
    async release() {
      end()
      if (lost.signal.aborted) return
      await unlessOutOfReach(store.releaseLease(epoch)).catch(whenReplaced(() => {}))
    },
  }
}

/** The same store, which commits nothing once another process holds the lease, or once the store went back in time. */
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
      lease.note(Number(beats))
      return result
    },
  }
}

/** Null when the store did not answer, or another writer kept it locked. */
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
