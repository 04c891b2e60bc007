/** SQLite would wait for a lock in the thread that asks: it is asked again and again instead. */
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LockWait } from '../store.ts'
import { isBusy, translate } from './failures.ts'

/** How long a writer waits for another writer, such as a running import, before it gives up. */
const usualPatienceMs = 30_000
const tellAfterMs = 2_000
/** Between two tries; at random, so that those who wait do not keep step. */
const [shortestPauseMs, longestPauseMs] = [5, 50]
/** Longest wait of a read in its thread: for moments, after another process crashed. */
export const readPatienceMs = 1_000

export async function waitForLock<T>(path: string, attempt: () => T, wait: LockWait): Promise<T> {
  const { patienceMs = usualPatienceMs, onWait, signal } = wait
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

/** A transaction that nothing will keep from writing: no statement of it, nor its end, waits for a lock. */
export async function inTransaction<T>(
  db: DatabaseSync,
  path: string,
  wait: LockWait,
  work: () => Promise<T>,
): Promise<T> {
  await waitForLock(
    path,
    () => {
      db.exec('PRAGMA busy_timeout = 0')
      try {
        db.exec('BEGIN IMMEDIATE')
      } finally {
        db.exec(`PRAGMA busy_timeout = ${readPatienceMs}`)
      }
    },
    wait,
  )
  try {
    const result = await work()
    translate(path, () => db.exec('COMMIT'))
    return result
  } finally {
    // SQLite has rolled back by itself after some failures, a full disk among them.
    if (db.isTransaction) db.exec('ROLLBACK')
  }
}
