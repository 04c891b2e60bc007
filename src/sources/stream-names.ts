/** Names of the connector's streams. Stores hold these names and `fatura status` prints them, so they must not change. */
import type { SourceIdentity } from './source.ts'

export const importStream = 'import'

type Prefixed = Pick<SourceIdentity, 'streamPrefix'>

export type BillingStreams = ReturnType<typeof billingStreams>
type DocumentStreams = ReturnType<typeof documentStreams>

export function billingStreams({ streamPrefix }: Prefixed) {
  return {
    /** All invoices of the account, read once. */
    backfill: `${streamPrefix}:backfill`,
    /** All invoices of the account, read again and again at a low rate. */
    relist: `${streamPrefix}:relist`,
    /** New events of the payment platform. */
    events: `${streamPrefix}:events`,
    /** Invoices that may still change. */
    unsettled: `${streamPrefix}:unsettled`,
  }
}

export function documentStreams({ streamPrefix }: Prefixed) {
  return {
    /** All documents, read month by month. */
    all: `${streamPrefix}:all`,
    recent: `${streamPrefix}:recent`,
    /** Documents that may still change. */
    open: `${streamPrefix}:open`,
  }
}

/**
 * How a stream counts for the header `Fatura-Synced-At`. `follows`: records are as fresh as the start of the stream's last success.
 * `once`: nothing is fresh before the stream's first success. `alone`: like `follows`, but only in a store without other streams.
 * `nothing`: the stream does not count, because it only looks for missed changes.
 */
export type Freshness = 'follows' | 'once' | 'alone' | 'nothing'

/** Freshness by stream name without its prefix. */
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
