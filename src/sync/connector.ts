/** From a payment platform to the store: everything once, then events, and regular checks for missed changes. */

import type { Logger } from 'pino'
import { usualRules } from '../linking/link.ts'
import type { BillingSource, Notification, SourceIdentity } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import { billingStreams } from '../stream-names.ts'
import type { Applied } from './apply.ts'
import { createCorrections } from './corrections.ts'
import { noGuard } from './deletion-guard.ts'
import { followEvents } from './events.ts'
import type { LinkOptions } from './link-invoices.ts'
import { createAccountLists } from './list-account.ts'
import { createRefetch } from './refetch-invoices.ts'
import { createRetry } from './retry-set-aside.ts'
import { createStampedCalls } from './stamped-calls.ts'
import { createStreams } from './streams.ts'
import type { SyncContext } from './sync-context.ts'

export interface ConnectorOptions extends Partial<LinkOptions> {
  source: BillingSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  onProgress?: SyncContext['reportProgress']
}

export type Connector = Awaited<ReturnType<typeof createConnector>>

/** The connector's methods may run at the same time. */
export async function createConnector(options: ConnectorOptions) {
  const { source, store, log, signal, rules = usualRules, guard = noGuard } = options
  const { system } = source
  const corrections = await createCorrections(store, system, log)
  const calls = await createStampedCalls({ system, store, rules, guard, log, corrections })
  const streams = createStreams(store, signal)
  const names = billingStreams(source)
  const reportProgress = options.onProgress
  const context = { source, store, log, signal, calls, corrections, streams, names, reportProgress }
  const refetch = createRefetch(context)
  const lists = createAccountLists(context, refetch)
  const readEvents = followEvents(context, refetch, lists)
  const { isListed, backfill, relist, rereadUnsettled } = lists
  return {
    source: source as SourceIdentity & Pick<BillingSource, 'relistEveryMs'>,
    startedAt: calls.startedAt,
    ...{ isListed, backfill, relist, rereadUnsettled },
    /** Applies the events since the last call. Lists of whole customers are awaited for `patienceMs`; longer ones go on. */
    async catchUp(patienceMs?: number): Promise<Applied> {
      await lists.begun()
      return readEvents(patienceMs)
    },
    ...createRetry(context, refetch),
    applyNotification: (notification: Notification) => refetch.applyNotifications([notification]),
  }
}
