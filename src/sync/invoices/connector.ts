/**
 * Copies a payment platform's invoices into the store: all invoices once, then by events, with regular checks for missed changes.
 * Other folders call only this file, except `ranges.ts` (for `fatura status`) and the type `Applied` of `apply-answers.ts`.
 *
 * The webhook server (wired in `cli/start/start-sync.ts`) calls `applyNotification` for each webhook. The steps are:
 * 1. One fetch serves all calls for the same invoice that wait meanwhile (`refetch-invoices.ts`).
 * 2. The answer gets its stamps (`commit-answers.ts`).
 * 3. A pure function decides what the answer changes (`decide.ts`).
 * 4. One transaction makes the change (`apply-answers.ts`). Its `tx.saveInvoices` writes the rows (`store/sqlite/write-invoices.ts`,
 *    `store/postgres/write-invoices.ts`).
 * `applyNotification` resolves after the commit. Lists and events take the steps 2 to 4 as well.
 *
 * Promises: an older answer never replaces a newer one. Only a draft that the platform says is gone is deleted. A cursor is never ahead
 * of its rows. A record that cannot be stored is set aside with its reason. Documents are handled by `link-invoices.ts` beside this
 * folder.
 * Tests: `test/sync/decide.test.ts` and `list-plan-steps.test.ts` by tables, `test/sync/sync.test.ts` over engines, `test/sim/`.
 */
import type { Logger } from 'pino'
import type { BillingSource, Notification, SourceIdentity } from '../../sources/source.ts'
import { billingStreams } from '../../sources/stream-names.ts'
import type { NextStamp } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import type { Linking } from '../link-invoices.ts'
import { createStreams } from '../streams.ts'
import type { Applied } from './apply-answers.ts'
import { createCommits } from './commit-answers.ts'
import { openCorrections } from './corrections.ts'
import { EventReader } from './events.ts'
import { AccountLists } from './list-account.ts'
import { Refetch } from './refetch-invoices.ts'
import { retrySetAside } from './retry-set-aside.ts'
import type { SyncContext } from './sync-context.ts'

export interface ConnectorOptions extends Linking {
  source: BillingSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** Makes the stamps of requests and answers. The connector for documents uses the same function. */
  nextStamp: NextStamp
  onProgress?: SyncContext['reportProgress']
}

export type Connector = Awaited<ReturnType<typeof createConnector>>

/** Creates a connector. Several of its methods may run at the same time. */
export async function createConnector(options: ConnectorOptions) {
  const { source, store, log, signal, rules, guard, nextStamp } = options
  const { system } = source
  const corrections = await openCorrections(store, system, log)
  const context: SyncContext = {
    ...{ source, store, log, signal, nextStamp, corrections },
    commits: createCommits({ system, store, rules, guard, log, corrections, nextStamp }),
    streams: createStreams(store, signal),
    names: billingStreams(source),
    reportProgress: options.onProgress,
  }
  const refetch = new Refetch(context)
  const lists = new AccountLists(context, refetch)
  const events = new EventReader(context, refetch, lists)
  return {
    source: source as SourceIdentity & Pick<BillingSource, 'relistEveryMs'>,
    startedAt: nextStamp(),
    isListed: () => lists.isListed(),
    backfill: () => lists.backfill(),
    forceRelist: () => lists.forceRelist(),
    relist: (isForced: boolean, maxPages?: number) => lists.relist(isForced, maxPages),
    rereadUnsettled: (unlessSince?: number) => lists.rereadUnsettled(unlessSince),
    /** Applies the events since the last call. Waits at most `patienceMs` for lists of a customer's invoices. Longer lists continue. */
    async catchUp(patienceMs?: number): Promise<Applied> {
      await lists.begun()
      return events.read(patienceMs)
    },
    retrySetAside: (which: 'due' | 'all') => retrySetAside(context, refetch, which),
    applyNotification: (notification: Notification) => refetch.applyNotifications([notification]),
  }
}
