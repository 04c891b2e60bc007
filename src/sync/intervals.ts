/** The intervals of the connector's steps, in milliseconds. */

const second = 1_000
const minute = 60 * second

/** Events: a change is seen within 10 s without webhooks. */
export const eventsEvery = 5 * second
export const backfillEvery = 5 * second
export const unsettledEvery = 15 * minute
/** Retries of records that did not fit. */
export const asideEvery = 5 * minute
/** Retries of invoices that wait for an unreachable part of the store. */
export const waitingEvery = 30 * second
/** From the end of a list of everything to the beginning of the next. */
export const relistEvery = 24 * 60 * minute
/** Pages of it that a single run reads for each second since the last run: a tenth of that time, at 20 pages a second. */
export const relistPagesPerSecond = 2
export const relistPagesAtLeast = 20
/** Reads of recent documents, and of documents that may still change. */
export const recentEvery = minute
export const openEvery = 5 * minute
/** Sweeps of all documents, from one beginning to the next; a sweep that takes longer is followed by the next at once. */
export const allEvery = 5 * minute
