import type { Change } from '../domain/change.ts'

/** A change as it is stored; `at` is in milliseconds. */
export type StoredChange = Omit<Change, 'at' | 'cursor'> & {
  /** Its place in the feed that it was read from. */
  seq: number
  at: number
}

export interface ChangePage {
  changes: StoredChange[]
  /** The place behind the last of them. */
  next: number
  /** The life of the store that these places belong to. */
  life: string
}

export interface ChangeReads {
  /**
   * Changes after a place, of a customer or of all, in the order of their commits. Null when some of them are pruned, and where the
   * place is none of this store: of another life, or beyond the feed's end. A replica may be behind: it is out of reach then.
   * Without a place there are none, and `next` is the feed's end. A place in a customer's feed is its version.
   */
  readChanges(
    customerId: string | null,
    after: number | null,
    limit: number,
    life?: string,
  ): Promise<ChangePage | null>
}

/** How many changes one transaction removes: some tenths of a second. */
export const pruneAtOnce = 10_000
