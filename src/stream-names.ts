/** The streams of records, as the store and `fatura status` know them. Stores keep these names: they stay as they are. */
import type { SourceIdentity } from './sources.ts'

/** The stream of imports. */
export const importStream = 'import'

type Prefixed = Pick<SourceIdentity, 'streamPrefix'>

export type BillingStreams = ReturnType<typeof billingStreams>

export function billingStreams({ streamPrefix }: Prefixed) {
  return {
    /** The whole account, once; and again, slowly. */
    backfill: `${streamPrefix}:backfill`,
    relist: `${streamPrefix}:relist`,
    /** Events as they happen. */
    events: `${streamPrefix}:events`,
    /** Invoices that may still change. */
    unsettled: `${streamPrefix}:unsettled`,
  }
}

export function documentStreams({ streamPrefix }: Prefixed) {
  return {
    /** Everything, month by month. */
    all: `${streamPrefix}:all`,
    recent: `${streamPrefix}:recent`,
    /** Documents that may still change. */
    open: `${streamPrefix}:open`,
  }
}

export function isStreamOf({ streamPrefix }: Prefixed, name: string): boolean {
  return name.startsWith(`${streamPrefix}:`)
}
