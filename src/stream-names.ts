/** The streams of records, as the store and `fatura status` know them. Stores keep these names: they stay as they are. */
import type { SourceIdentity } from './sources.ts'

/** The stream of imports. */
export const importStream = 'import'

export interface BillingStreams {
  /** The whole account, once; and again, slowly. */
  backfill: string
  relist: string
  /** Events as they happen. */
  events: string
  /** Invoices that may still change. */
  unsettled: string
}

export function billingStreams({ streamPrefix }: Pick<SourceIdentity, 'streamPrefix'>): BillingStreams {
  return {
    backfill: `${streamPrefix}:backfill`,
    relist: `${streamPrefix}:relist`,
    events: `${streamPrefix}:events`,
    unsettled: `${streamPrefix}:unsettled`,
  }
}

export interface DocumentStreams {
  /** Everything, month by month. */
  all: string
  recent: string
  /** Documents that may still change. */
  open: string
}

export function documentStreams({ streamPrefix }: Pick<SourceIdentity, 'streamPrefix'>): DocumentStreams {
  return { all: `${streamPrefix}:all`, recent: `${streamPrefix}:recent`, open: `${streamPrefix}:open` }
}

export function isStreamOf({ streamPrefix }: Pick<SourceIdentity, 'streamPrefix'>, name: string): boolean {
  return name.startsWith(`${streamPrefix}:`)
}
