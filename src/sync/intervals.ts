/** How often each part of the connector has its turn, in milliseconds. */

const second = 1_000
const minute = 60 * second

/** How often what happened is asked for: with the round itself, a change is seen within 10 s without webhooks. */
export const eventsEvery = 5 * second
/** How often it is looked whether everything is to be listed. */
export const backfillEvery = 5 * second
/** How often everything that may still change is looked at again, and what did not fit is tried again. */
export const unsettledEvery = 15 * minute
export const asideEvery = 5 * minute
/** How often it is looked whether something waits for a part of the store, and whether that is back. */
export const waitingEvery = 30 * second
/** How long after the end of a list of everything the next one begins, slowly. */
export const relistEvery = 24 * 60 * minute
/** How many pages of it a single run reads for each second since the last run: that takes a tenth of that time, at the pace of 20 a second. */
export const relistPagesPerSecond = 2
export const relistPagesAtLeast = 20
/** How often new documents are looked for, and those that still change are looked at. */
export const recentEvery = minute
export const openEvery = 5 * minute
/** How often all documents are read, from one beginning to the next: at once again where it takes longer. */
export const allEvery = 5 * minute
