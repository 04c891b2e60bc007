/** Binds a store to the accounts of its first synchronization. A key of another account or mode is refused before anything is written. */
import type { InvoiceKey } from '../domain/invoice.ts'
import {
  type BillingAccount,
  type BillingSource,
  SourceError,
  type SourceIdentity,
} from '../sources/source.ts'
import { isStreamOf } from '../sources/stream-names.ts'
import type { BoundAccount } from '../store/connector-store.ts'
import type { OperatorStore, WriteStore } from '../store/store.ts'
import { newStream } from './streams.ts'

export interface Accounts {
  source: BillingSource
  /** The invoicing system and its account. Null when no invoicing system is connected. */
  invoicing: { source: SourceIdentity; account: string } | null
}

/** Compares the account to which the store is bound with the account of the configured key. */
export interface Comparison {
  source: SourceIdentity
  bound: string | null
  found: string
  /**
   * `kept`: the store is bound to this account. `new`: the store is not bound to the account yet, or does not know its full name. `other`:
   * the store is bound to another account.
   */
  verdict: 'kept' | 'new' | 'other'
}

export async function compareAccounts(store: OperatorStore, accounts: Accounts): Promise<Comparison[]> {
  const boundTo = new Map((await store.listBoundAccounts()).map(({ system, account }) => [system, account]))
  const { source, invoicing } = accounts
  const billing = await compareBilling(store, source, boundTo.get(source.system) ?? null)
  if (invoicing === null) return [billing]
  const [bound, found] = [boundTo.get(invoicing.source.system) ?? null, invoicing.account]
  const verdict = bound === null ? 'new' : bound === found ? 'kept' : 'other'
  return [billing, { source: invoicing.source, bound, found, verdict }]
}

async function compareBilling(
  store: OperatorStore,
  source: BillingSource,
  bound: string | null,
): Promise<Comparison> {
  const account = await source.identify()
  const before = bound === null ? { id: null, mode: null } : readAccount(bound)
  const isOther = differ(before.mode, account.mode) || differ(before.id, account.id)
  const isNamed = before.id !== null && account.id !== null
  if (isOther || (!isNamed && !(await findsStored(store, source))))
    return { source, bound, found: writeAccount(account), verdict: 'other' }
  if (isNamed) return { source, bound, found: writeAccount(account), verdict: 'kept' }
  const found = writeAccount({ id: account.id ?? before.id, mode: account.mode ?? before.mode })
  return { source, bound, found, verdict: bound === found ? 'kept' : 'new' }
}

/** Number of stored invoices that are fetched as a test. */
const sampleSize = 5
const [rowsAtATime, maxRows] = [500, 10_000]

/**
 * Whether the key finds one of a few stored invoices, or the store has none to test. Drafts are not
 * tested, because drafts can be deleted. The test identifies an account whose id the key may not read.
 */
async function findsStored(store: OperatorStore, source: BillingSource): Promise<boolean> {
  const sample = await pickStored(store)
  let failure: SourceError | null = null
  for (const { id, customer_id } of sample)
    try {
      if ((await source.fetchInvoice(id, customer_id)).found !== null) return true
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      failure = error
    }
  if (failure !== null) throw failure
  return sample.length === 0
}

async function pickStored(store: OperatorStore): Promise<InvoiceKey[]> {
  const picked: InvoiceKey[] = []
  let after: InvoiceKey | null = null
  for (let rows = 0; rows < maxRows && picked.length < sampleSize; rows += rowsAtATime) {
    const some = await store.readLinked(after, rowsAtATime, null)
    picked.push(
      ...some.filter(({ claim, summary }) => claim !== null && JSON.parse(summary).status !== 'draft'),
    )
    if (some.length < rowsAtATime) break
    after = some.at(-1) ?? null
  }
  return picked.slice(0, sampleSize)
}

export async function bindAccounts(store: WriteStore, compared: readonly Comparison[]): Promise<void> {
  const newlyBound = compared.filter(({ verdict }) => verdict === 'new').map(toBoundAccount)
  if (newlyBound.length === 0) return
  await store.transaction(async tx => {
    for (const account of newlyBound) await tx.saveBoundAccount(account)
  })
}

/** Binds the found accounts in place of the stored ones, and resets the streams of their systems. */
export async function rebindAccounts(store: WriteStore, compared: readonly Comparison[]): Promise<void> {
  const streams = await store.listStreams()
  await store.transaction(async tx => {
    for (const comparison of compared) {
      await tx.saveBoundAccount(toBoundAccount(comparison))
      for (const { name } of streams.filter(({ name }) => isStreamOf(comparison.source, name)))
        await tx.saveStream(newStream(name))
    }
  })
}

function toBoundAccount({ source, found }: Comparison): BoundAccount {
  return { system: source.system, account: found, bound_at: Date.now() }
}

function differ(a: string | null, b: string | null): boolean {
  return a !== null && b !== null && a !== b
}

const unknown = '?'

/** Writes an account, for example "acct_1 test". A question mark stands for a part that the key may not read. */
function writeAccount({ id, mode }: BillingAccount): string {
  return `${id ?? unknown} ${mode ?? unknown}`
}

export function readAccount(text: string): BillingAccount {
  const [id = unknown, mode = unknown] = text.split(' ')
  return { id: id === unknown ? null : id, mode: mode === 'live' || mode === 'test' ? mode : null }
}

export function formatAccount({ name }: SourceIdentity, account: string): string {
  const { id, mode } = readAccount(account)
  const words = id === null ? `a ${name} account that the key may not name` : `the ${name} account ${id}`
  return mode === null ? words : `${words}, ${mode} mode`
}
