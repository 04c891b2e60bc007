/** Before the connector may write: the accounts must be those that the store holds, and no other process the connector. */
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

/** Time that one question for the lease waits for another writer: it is asked again anyway. */
const leasePatienceMs = 200
const batchSize = 100

export interface SyncOptions extends ReturnType<typeof syncOf> {
  stripe: StripeOptions
  log: Logger
  signal: AbortSignal
  onProgress?(step: string, invoices: number, part: number | null): void
  onDocuments?(documents: number): void
  isFull?: boolean
  /** Whether a single run waits for another process that synchronizes; otherwise it is an error. */
  wait?: boolean
  /** Whether to apply the changes that the guard holds back by now. */
  letThrough?: boolean
}

/**
 * Waits until this process is the connector. With `isOnce`, a failure ends it; otherwise it tries again until the signal. `place` is
 * kept by a process that opens the store again.
 */
export async function openConnector(options: SyncOptions, isOnce: boolean, place: WrittenPlace) {
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
    const turn = AbortSignal.any([signal, refuseEarly(store, accounts, await leases.readLease())])
    lease = await waitForLease(leases, { holder: nameProcess(), wait, log, signal: turn, place })
    const fenced = fenceStore(store, lease)
    const stopped = AbortSignal.any([signal, lease.lost])
    const guard = await createDeletionGuard(fenced, log, letThrough)
    return {
      ...options,
      /** Commits nothing once another process is the connector. Closing it lets the next one begin. */
      store: { ...fenced, close },
      guard,
      /** Aborted by the signal, and once another process is the connector. */
      signal: stopped,
      /** Before anything of an upstream system is written: rejects when the accounts are not the store's. */
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

/** Accounts are compared by what they hold, whatever the keys of its metadata. */
export function accountsOf(options: Pick<SyncOptions, 'stripe' | 'invoiceXpress'>): Accounts {
  const invoicing = options.invoiceXpress && invoicingAccountOf(options.invoiceXpress)
  return { source: createBillingSource(options.stripe, defaultKeys), invoicing }
}

/** Aborts a process that waits for its turn at once when it may not begin then. */
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

/** Checks the accounts, and binds them the first time. A failure counts as one of the stream that was to run first. */
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

/** Invoices that kept a document which is gone: nothing else would look at them again. Drafts are looked at anyway. */
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
    bound === null ? 'invoices that this key does not find' : `what came from ${formatAccount(source, bound)}`
  const leads = bound === found ? 'finds none of it' : `leads to ${formatAccount(source, found)}`
  return `This store holds ${holds}, and ${settings} ${leads}. Nothing was changed. Use that account's key, or another store (DATABASE_URL); to follow the other account from now on: fatura account change.`
}
