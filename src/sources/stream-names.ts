/** The streams of records, as the store and `fatura status` know them. Stores keep these names: they stay as they are. */
import type { SourceIdentity } from './source.ts'

/** The stream of imports. */
export const importStream = 'import'

type Prefixed = Pick<SourceIdentity, 'streamPrefix'>

export type BillingStreams = ReturnType<typeof billingStreams>
type DocumentStreams = ReturnType<typeof documentStreams>

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

/**
 * What a stream says to `Fatura-Synced-At`. `follows`: the records are as fresh as the beginning of its last success. `once`: until its
 * first success nothing is fresh. `alone`: as `follows`, but only where the store has no other stream. `nothing`: it looks for what was missed.
 */
export type Freshness = 'follows' | 'once' | 'alone' | 'nothing'

/** By a stream's name without its prefix. */
export const freshness: Readonly<
  Record<keyof BillingStreams | keyof DocumentStreams | typeof importStream, Freshness>
> = {
  backfill: 'once',
  relist: 'nothing',
  events: 'follows',
  unsettled: 'nothing',
  all: 'follows',
  recent: 'follows',
  open: 'follows',
  [importStream]: 'alone',
}

export function isStreamOf({ streamPrefix }: Prefixed, name: string): boolean {
  return name.startsWith(`${streamPrefix}:`)
}
