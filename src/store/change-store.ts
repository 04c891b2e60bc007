import type { Change } from '../change.ts'

/** A change as it is stored; `at` is in milliseconds. */
export type StoredChange = Omit<Change, 'at'> & { at: number }

export interface ChangePage {
  changes: StoredChange[]
  /** The cursor behind the last of them. */
  next: number
}

export interface ChangeReads {
  /**
   * Changes after a cursor, of a customer or of all, in the order of their commits; null when some of them are pruned.
   * Without a cursor there are none, and `next` is the feed's end. A cursor of a customer's feed is its version.
   */
  readChanges(customerId: string | null, after: number | null, limit: number): Promise<ChangePage | null>
}

/** How many changes one transaction removes: some tenths of a second. */
export const pruneAtOnce = 10_000
