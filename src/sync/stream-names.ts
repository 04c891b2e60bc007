/** The streams of the payment platform, as the store and `fatura status` know them. */
export const backfillStream = 'stripe:backfill'
export const eventsStream = 'stripe:events'
export const unsettledStream = 'stripe:unsettled'
export const relistStream = 'stripe:relist'
