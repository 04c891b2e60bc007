const second = 1_000
const minute = 60 * second

/** The intervals of the connector's steps, in milliseconds. */
export const everyMs = {
  /** A change is seen within 10 s without webhooks. */
  events: 5 * second,
  backfill: 5 * second,
  unsettled: 15 * minute,
  /** Retries of records that did not fit, and of invoices that wait for an unreachable part of the store. */
  aside: 5 * minute,
  waiting: 30 * second,
  /** From the end of a list of everything to the beginning of the next. */
  relist: 24 * 60 * minute,
  /** Reads of recent documents, and of documents that may still change. */
  recent: minute,
  open: 5 * minute,
  /** Sweeps of all documents, from one beginning to the next; a sweep that takes longer is followed by the next at once. */
  all: 5 * minute,
}
