/** From a payment platform to the store: everything once, then events, and regular checks for missed changes. */

import type { Logger } from 'pino'
import type { InvoiceKey } from '../invoice.ts'
import { usualRules } from '../linking/link.ts'
import type { BillingSource, Notification, SourceIdentity } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import { billingStreams } from '../stream-names.ts'
import type { Applied } from './apply.ts'
import { createBackfill } from './backfill.ts'
import { noGuard } from './deletion-guard.ts'
import { followEvents } from './events.ts'
import type { LinkOptions } from './link-invoices.ts'
import { createRefetch, rememberEvents } from './refetch-invoices.ts'
import { createRelist } from './relist.ts'
import { createRetry } from './retry-set-aside.ts'
import { createStampedCalls } from './stamped-calls.ts'
import { createStreams } from './streams.ts'
import type { SyncContext } from './sync-context.ts'
import { createReread } from './unsettled.ts'

export interface ConnectorOptions extends Partial<LinkOptions> {
  source: BillingSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  onProgress?: SyncContext['reportProgress']
}

/** Its methods may run at the same time. */
export interface Connector {
  source: SourceIdentity & Pick<BillingSource, 'relistEveryMs'>
  /** The stamp before its first request. */
  startedAt: number
  /** Lists the whole account; goes on where it was cut off, and does nothing once it reached the end. */
  backfill(): Promise<Applied>
  /** Whether the whole account was listed. False again after a gap in the events that only a list can close. */
  isListed(): Promise<boolean>
  /**
   * Applies the events since the last call. Lists of whole customers are awaited for `patienceMs`; those that take longer go on,
   * and are requested again the next time.
   */
  catchUp(patienceMs?: number): Promise<Applied>
  /** Fetches again every invoice that may still change or be deleted; with a stamp, only if some were not observed since. */
  rereadUnsettled(unlessSince?: number): Promise<Applied>
  /** Lists everything again, slowly; at full speed when it is forced or limited to a number of pages. */
  relist(isForced: boolean, pagesAtMost?: number): Promise<Applied>
  refetch(key: InvoiceKey): Promise<Applied>
  /** Lists a few pages of the customer's invoices, and of those created within the same hour. */
  refetchNear(customerId: string, created: number | null): Promise<Applied>
  /** Fetches again invoices that wait for an unreachable part of the store; null when there are none. */
  retryWaiting(): Promise<Applied | null>
  /** Fetches again invoices that did not fit, and refused ones; null when there are none. */
  retrySetAside(): Promise<Applied | null>
  /** Applies one notification; the change is committed once it resolves. */
  applyNotification(notification: Notification): Promise<Applied>
}

export async function createConnector(options: ConnectorOptions): Promise<Connector> {
  const { source, store, log, signal, rules = usualRules, guard = noGuard } = options
  const calls = await createStampedCalls({ system: source.system, store, rules, guard, log })
  const streams = createStreams(store, signal)
  const names = billingStreams(source)
  const context = { source, store, log, signal, calls, streams, names, reportProgress: options.onProgress }
  const handled = rememberEvents()
  const refetch = createRefetch(context, handled)
  const backfill = createBackfill(context, refetch)
  const readEvents = followEvents(context, refetch, handled, backfill)
  return {
    source,
    startedAt: calls.startedAt,
    backfill: backfill.run,
    isListed: backfill.isDone,
    async catchUp(patienceMs) {
      await backfill.begun()
      return readEvents(patienceMs)
    },
    rereadUnsettled: createReread(context, refetch),
    relist: createRelist(context, refetch),
    ...createRetry(context, refetch),
    refetch: key => refetch.fetchEach([key]),
    refetchNear: refetch.fetchNear,
    applyNotification: notification => refetch.applyNotifications([notification]),
  }
}
