/** Before the connector may write: the accounts must be those that the store holds, and no other process the connector. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { InvoiceXpressOptions } from '../../invoicexpress/client.ts'
import { invoiceXpressIdentity } from '../../invoicexpress/source-identity.ts'
import type { LinkRules } from '../../linking/link.ts'
import { SourceError } from '../../sources.ts'
import type { Lease } from '../../store/connector-store.ts'
import { openConnectorStores } from '../../store/engines.ts'
import type { WriteStore } from '../../store/store.ts'
import { billingStreams } from '../../stream-names.ts'
import { createBillingSource } from '../../stripe/billing-source.ts'
import type { StripeOptions } from '../../stripe/client.ts'
import { stripeIdentity } from '../../stripe/source-identity.ts'
import { createDeletionGuard, type DeletionGuard } from '../../sync/deletion-guard.ts'
import { fenceStore, type HeldLease, waitForLease } from '../../sync/lease.ts'
import { relinkInvoices } from '../../sync/link-invoices.ts'
import { type Accounts, type Comparison, compareAccounts, formatAccount, savePins } from '../../sync/pins.ts'
import { createStreams } from '../../sync/streams.ts'
import { CliError } from '../terminal/cli-error.ts'
import { logWaiting } from '../terminal/log.ts'
import { hasEnded, nameProcess } from './process-name.ts'

/** The lease is asked for again anyway: in milliseconds, how long one question waits for another writer. */
const leasePatienceMs = 200
/** How long to wait after a failure. */
const patience = 5_000
const batchSize = 100

export interface ConnectorAccess {
  url: string
  stripe: StripeOptions
  invoiceXpress: InvoiceXpressOptions | null
  rules: LinkRules
  log: Logger
  signal: AbortSignal
  /** Whether a failure ends it; otherwise it is tried again until the signal. */
  isOnce: boolean
  /** Whether to wait for another process that is the connector. */
  wait: boolean
  /** Whether what the guard holds back by now may go. */
  letThrough: boolean
}

export interface OpenConnector {
  /** Commits nothing once another process is the connector. Closing it lets the next one begin. */
  store: WriteStore
  guard: DeletionGuard
  /** Aborted by the signal, and once another process is the connector. */
  signal: AbortSignal
  /** To be waited for before anything of an upstream system is written: rejects when the accounts are not the store's. */
  settle(): Promise<void>
}

/** Waits until this process is the connector. */
export async function openConnector(access: ConnectorAccess): Promise<OpenConnector> {
  const { url, log, wait, signal } = access
  const { store, leases } = await openConnectorStores(url, { onWait: logWaiting(log), leasePatienceMs })
  const accounts = accountsOf(access)
  let lease: HeldLease | undefined
  const close = async () => {
    await lease?.release()
    await leases.close()
    await store.close()
  }
  try {
    const turn = AbortSignal.any([signal, refuseEarly(store, accounts, await leases.readLease())])
    const names = { holder: nameProcess(), isGone: hasEnded }
    lease = await waitForLease(leases, { ...names, wait, log, signal: turn })
    const fenced = fenceStore(store, lease)
    const stopped = AbortSignal.any([signal, lease.lost])
    const guard = await createDeletionGuard(fenced, log, access.letThrough)
    return {
      store: { ...fenced, close },
      guard,
      signal: stopped,
      async settle() {
        await settleAccounts(fenced, accounts, { ...access, signal: stopped })
        await relinkReleased(fenced, guard, access.rules)
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

export function accountsOf({
  stripe,
  invoiceXpress,
}: Pick<ConnectorAccess, 'stripe' | 'invoiceXpress'>): Accounts {
  return {
    source: createBillingSource(stripe),
    invoicing: invoiceXpress && {
      source: invoiceXpressIdentity,
      account: invoiceXpress.account ?? new URL(invoiceXpress.base).origin,
    },
  }
}

/** Whoever has to wait learns at once, rather than when its turn comes, that it may not begin then: aborts with the reason. */
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
    if (comparison.verdict === 'other') throw new CliError(tellOther(comparison))
}

/** Checks the accounts, and pins them the first time. What fails here is told as the failure of what was to run first. */
async function settleAccounts(
  store: WriteStore,
  accounts: Accounts,
  { log, isOnce, signal }: ConnectorAccess,
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
      return await savePins(store, compared)
    } catch (error) {
      if (isOnce || !(error instanceof SourceError)) throw error
      log.error({ err: error }, 'sync failed; trying again')
      await sleep(patience, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
}

/** Invoices that kept a document which is gone: nothing else would look at them again. Drafts are looked at anyway. */
async function relinkReleased(store: WriteStore, guard: DeletionGuard, rules: LinkRules): Promise<void> {
  const ids = guard.released('downgrade').map(({ id }) => id)
  for (let start = 0; start < ids.length; start += batchSize) {
    const wanted = { documents: [], invoices: ids.slice(start, start + batchSize) }
    await store.transaction(tx => relinkInvoices(tx, wanted, 'deletion_guard', { rules, guard }))
  }
}

function tellOther({ source, pinned, found }: Comparison): string {
  const settings = source.system === stripeIdentity.system ? 'STRIPE_API_KEY' : 'INVOICEXPRESS_ACCOUNT'
  const holds =
    pinned === null
      ? 'invoices that this key does not find'
      : `what came from ${formatAccount(source, pinned)}`
  const leads = pinned === found ? 'finds none of it' : `leads to ${formatAccount(source, found)}`
  return `This store holds ${holds}, and ${settings} ${leads}. Nothing was changed. Use that account's key, or another store (DATABASE_URL); to follow the other account from now on: fatura account change.`
}
