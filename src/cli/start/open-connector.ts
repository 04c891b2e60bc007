/** Opens the store for the connector. Before the connector writes, it must hold the lease, and the accounts must be those of the store. */
import type { Logger } from 'pino'
import type { LinkRules } from '../../domain/link/link.ts'
import { invoicingAccountOf } from '../../sources/invoicexpress/source-identity.ts'
import { SourceError } from '../../sources/source.ts'
import { billingStreams } from '../../sources/stream-names.ts'
import { createBillingSource } from '../../sources/stripe/billing-source.ts'
import type { StripeOptions } from '../../sources/stripe/client.ts'
import { defaultKeys } from '../../sources/stripe/map-claim.ts'
import { stripeIdentity } from '../../sources/stripe/source-identity.ts'
import type { Lease } from '../../store/connector-store.ts'
import { openConnectorStores } from '../../store/engines.ts'
import type { WriteStore } from '../../store/store.ts'
import {
  type Accounts,
  bindAccounts,
  type Comparison,
  compareAccounts,
  formatAccount,
} from '../../sync/accounts.ts'
import { createDeletionGuard, type DeletionGuard } from '../../sync/deletion-guard.ts'
import { fenceStore, type HeldLease, nameProcess, waitForLease } from '../../sync/lease.ts'
import { relinkInvoices } from '../../sync/link-invoices.ts'
import { pause, retryPauseMs } from '../../sync/schedule.ts'
import { createStreams } from '../../sync/streams.ts'
import type { WrittenPlace } from '../../sync/written-place.ts'
import type { syncOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import { logWaiting } from '../terminal/log.ts'

/** Time for which a request for the lease waits for another writer of the store. The request is repeated anyway. */
const leasePatienceMs = 200
const batchSize = 100

export interface SyncOptions extends ReturnType<typeof syncOf> {
  stripe: StripeOptions
  log: Logger
  signal: AbortSignal
  onProgress?(step: string, invoices: number, part: number | null): void
  onDocuments?(documents: number): void
  isFull?: boolean
  /** Whether `sync --once` waits for another process that synchronizes. Without `wait`, another such process is an error. */
  wait?: boolean
  /** Whether the deletion guard allows the losses that it already holds back when this process starts. */
  letThrough?: boolean
}

/**
 * Waits until this process holds the lease. With `isOnce`, `settle` rejects at its first failure. Otherwise `settle` repeats a failed call
 * to an upstream system until the signal aborts. `written` remembers the last commit of this process. Pass the same object when the process
 * opens the store again.
 */
export async function openConnector(options: SyncOptions, isOnce: boolean, written: WrittenPlace) {
  const { url, log, wait = true, letThrough = false, signal } = options
  const { store, leases } = await openConnectorStores(url, { onWait: logWaiting(log), leasePatienceMs })
  const accounts = accountsOf(options)
  let lease: HeldLease | undefined
  const close = async () => {
    await lease?.release()
    await leases.close()
    await store.close()
  }
  try {
    const endWait = AbortSignal.any([signal, refuseEarly(store, accounts, await leases.readLease())])
    lease = await waitForLease(leases, { holder: nameProcess(), wait, log, signal: endWait, place: written })
    const fenced = fenceStore(store, lease)
    const stopped = AbortSignal.any([signal, lease.lost])
    const guard = await createDeletionGuard(fenced, log, letThrough)
    return {
      ...options,
      /** A store whose commits fail once another process holds the lease. `close` releases the lease. */
      store: { ...fenced, close },
      guard,
      /** Aborted by the caller's signal, or when another process takes over the lease. */
      signal: stopped,
      /** Call before the first write of data from an upstream system. Rejects when the accounts differ from the store's accounts. */
      async settle() {
        await settleAccounts(fenced, accounts, log, isOnce, stopped)
        await relinkLetThrough(fenced, guard, options.rules)
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The accounts to compare with the store. The metadata keys do not matter for this comparison. */
export function accountsOf(options: Pick<SyncOptions, 'stripe' | 'invoiceXpress'>): Accounts {
  const invoicing = options.invoiceXpress && invoicingAccountOf(options.invoiceXpress)
  return { source: createBillingSource(options.stripe, defaultKeys), invoicing }
}

/**
 * Returns a signal for a process that waits for the lease. The signal aborts at once when the process's accounts differ from the store's
 * accounts.
 */
function refuseEarly(store: WriteStore, accounts: Accounts, { holder }: Lease): AbortSignal {
  const refusal = new AbortController()
  if (holder !== null)
    compareAccounts(store, accounts)
      .then(refuseOthers)
      .catch(error => {
        if (error instanceof CliError) refusal.abort(error)
      })
  return refusal.signal
}

function refuseOthers(compared: readonly Comparison[]): void {
  for (const comparison of compared)
    if (comparison.verdict === 'other') throw new CliError(describeOther(comparison))
}

/**
 * Compares the accounts with the store's accounts, and stores them at the first run. A failure is recorded on the stream `events`, or on
 * `backfill` before its first success.
 */
async function settleAccounts(
  store: WriteStore,
  accounts: Accounts,
  log: Logger,
  isOnce: boolean,
  signal: AbortSignal,
): Promise<void> {
  const streams = createStreams(store, signal)
  const names = billingStreams(accounts.source)
  const isListed = (await streams.read(names.backfill)).succeeded_at !== null
  for (;;)
    try {
      const compared = await streams.run(isListed ? names.events : names.backfill, () =>
        compareAccounts(store, accounts),
      )
      refuseOthers(compared)
      return await bindAccounts(store, compared)
    } catch (error) {
      if (isOnce || !(error instanceof SourceError)) throw error
      log.error({ err: error }, 'sync failed; trying again')
      await pause(retryPauseMs, signal)
      signal.throwIfAborted()
    }
}

/**
 * Derives the links again of invoices that the deletion guard has allowed to lose their document. No stream would process these invoices
 * again.
 */
async function relinkLetThrough(store: WriteStore, guard: DeletionGuard, rules: LinkRules): Promise<void> {
  const ids = guard.letThrough('lost_document').map(({ id }) => id)
  for (let start = 0; start < ids.length; start += batchSize) {
    const wanted = { documents: [], invoices: ids.slice(start, start + batchSize) }
    await store.transaction(tx =>
      relinkInvoices(tx, wanted, 'deletion_guard', { rules, guard, now: Date.now() }),
    )
  }
}

function describeOther({ source, bound, found }: Comparison): string {
  const settings = source.system === stripeIdentity.system ? 'STRIPE_API_KEY' : 'INVOICEXPRESS_ACCOUNT'
  const holds =
    bound === null ? 'invoices that this key does not find' : `records of ${formatAccount(source, bound)}`
  const leads = bound === found ? 'finds none of them' : `leads to ${formatAccount(source, found)}`
  return `This store holds ${holds}, but ${settings} ${leads}. Nothing was changed. Use the key of the store's account, or set DATABASE_URL to another store. To synchronize the other account with this store from now on, run: fatura account change`
}
