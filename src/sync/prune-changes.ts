import { pruneAtOnce } from '../store/change-store.ts'
import type { WriteStore } from '../store/store.ts'

/** Interval between two removals of old changes, in milliseconds. */
export const pruneEveryMs = 60 * 60_000

/** Removes changes that are older than `keptMs`. Each transaction removes some thousands, so that no other writer waits long. */
export async function pruneChanges(store: Pick<WriteStore, 'transaction'>, keptMs: number): Promise<void> {
  const before = Date.now() - keptMs
  while ((await store.transaction(tx => tx.pruneChanges(before, pruneAtOnce))) > 0);
}
