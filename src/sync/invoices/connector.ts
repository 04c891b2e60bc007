/**
 * From a payment platform to the store: everything once, then events, and regular checks for missed changes. This is the entry of the
 * folder: others call it alone, but for what `fatura status` shows of a list (`ranges.ts`) and what an answer counts (`Applied`).
 *
 * A webhook comes over HTTP (the source's webhook server, wired in `cli/start/start-sync.ts`), and here by `applyNotification`:
 * 1. one fetch for all that ask for the invoice meanwhile (`refetch-invoices.ts`);
 * 2. the answer with its stamps (`commit-answers.ts`);
 * 3. what the answer changes (`decide.ts`, pure);
 * 4. the change in one transaction (`apply-answers.ts`), whose `tx.saveInvoices` writes the rows (`store/sqlite/write-invoices.ts`,
 *    `store/postgres/write-invoices.ts`).
 * `applyNotification` resolves once the transaction is committed. Lists and events take the steps 2 to 4 as well.
 *
 * It promises: an older answer never replaces a newer one, nothing is deleted but a draft that the platform says is gone, a cursor is never
 * ahead of its rows, and what cannot be stored is set aside with its reason. It knows no document: `link-invoices.ts` beside the folder does.
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
  /** One for all that is asked for this store. */
  nextStamp: NextStamp
  onProgress?: SyncContext['reportProgress']
}

export type Connector = Awaited<ReturnType<typeof createConnector>>

/** The connector's methods may run at the same time. */
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
    /** Applies the events since the last call. Lists of whole customers are awaited for `patienceMs`; longer ones go on. */
    async catchUp(patienceMs?: number): Promise<Applied> {
      await lists.begun()
      return events.read(patienceMs)
    },
    retrySetAside: (which: 'due' | 'all') => retrySetAside(context, refetch, which),
    applyNotification: (notification: Notification) => refetch.applyNotifications([notification]),
  }
}
