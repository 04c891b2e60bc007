import { pruneAtOnce } from '../store/change-store.ts'
import type { WriteStore } from '../store/store.ts'

/** Between two looks for changes that are old enough to go. */
export const pruneEveryMs = 60 * 60_000

/** Removes the changes of before, some thousands a transaction: no other writer waits long. */
export async function pruneChanges(store: Pick<WriteStore, 'transaction'>, keptMs: number): Promise<void> {
  const before = Date.now() - keptMs
  while ((await store.transaction(tx => tx.pruneChanges(before, pruneAtOnce))) > 0);
}
