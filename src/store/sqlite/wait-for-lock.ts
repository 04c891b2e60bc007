/** SQLite would wait for a lock in the thread that asks: it is asked again and again instead. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LockWait } from '../store.ts'
import { isBusy, translate } from './failures.ts'

/** How long a writer waits for another writer, such as a running import, before it gives up. */
const defaultPatienceMs = 30_000
const tellAfterMs = 2_000
/** Between two tries; at random, so that those who wait do not keep step. */
const [shortestPauseMs, longestPauseMs] = [5, 50]
/** Longest wait of a read in its thread: for moments, after another process crashed. */
export const readPatienceMs = 1_000

export async function waitForLock<T>(path: string, wait: LockWait, attempt: () => T): Promise<T> {
  const { patienceMs = defaultPatienceMs, onWait, signal } = wait
  const started = performance.now()
  let isTold = false
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      const waited = performance.now() - started
      if (!isBusy(error) || waited >= patienceMs)
        return translate(path, () => {
          throw error
        })
      if (waited >= tellAfterMs && !isTold) {
        isTold = true
        onWait?.(path)
      }
    }
    const pause = shortestPauseMs + Math.random() * (longestPauseMs - shortestPauseMs)
    await sleep(pause, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
  }
}
