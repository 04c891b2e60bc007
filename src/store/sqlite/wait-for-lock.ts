/** Waits for a lock by trying again and again. SQLite's own wait would block the thread. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LockWait } from '../store.ts'
import { isBusy, translate } from './failures.ts'

/** Time in milliseconds that a writer waits for another writer, such as a running import. */
const defaultPatienceMs = 30_000
const reportAfterMs = 2_000
/**
 * Bounds of the pause between two tries, in milliseconds. The pause is random, so that waiting processes do not all try at the same time.
 */
const [shortestPauseMs, longestPauseMs] = [5, 50]
/**
 * Longest time in milliseconds that a read waits for a lock and blocks its thread. Such locks last moments, after another process crashed.
 */
export const readPatienceMs = 1_000

export async function waitForLock<T>(path: string, wait: LockWait, attempt: () => T): Promise<T> {
  const { patienceMs = defaultPatienceMs, onWait, signal } = wait
  const started = performance.now()
  let isReported = false
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      const waited = performance.now() - started
      if (!isBusy(error) || waited >= patienceMs)
        return translate(path, () => {
          throw error
        })
      if (waited >= reportAfterMs && !isReported) {
        isReported = true
        onWait?.(path)
      }
    }
    const pause = shortestPauseMs + Math.random() * (longestPauseMs - shortestPauseMs)
    await sleep(pause, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
  }
}
