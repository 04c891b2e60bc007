/**
 * The store's three contracts, by role: `ReadStore` for the API, `OperatorStore` for commands that only look (status,
 * explain, reconcile, doctor, export), `WriteStore` for the connector, the import and the token commands. The connections behind
 * the first two cannot write. Every engine meets all three, and one suite runs over all engines.
 */
import type { AccountQuery, FoundEntries } from '../domain/account.ts'
import type { OpenSum } from '../domain/balance.ts'
import type { Claim } from '../domain/document.ts'
import type { Expansion } from '../domain/expanded.ts'
import type { InvoiceKey, InvoiceRecord, InvoiceSum } from '../domain/invoice.ts'
import type { ChangeReads, Delivery, OutgoingWebhook, WebhookCommands } from './change-store.ts'
import type { ConnectorReads, ConnectorWrites, LeaseWrites } from './connector-store.ts'
import type { ContentsReads, ContentsWrites } from './contents.ts'
import type { DocumentReads, DocumentWrites } from './document-store.ts'
import type { ConnectionUse } from './facts.ts'
import type { InvoiceFilter } from './sql/filters.ts'

export type { ConnectionUse, InvoiceFilter }

/** The invoices of a walk. Unlike a list's, the bounds of `issued_at` may be any moments. */
export interface InvoiceWalk extends InvoiceFilter {
  /** Null means all of them. */
  customers: readonly string[] | null
  withLines: boolean
}

/** Stored JSON texts of an invoice. */
export interface WalkedInvoice {
  summary: string
  /** Null when the lines are not known, or not asked for. */
  lines: string | null
  /** The associated document; null when there is none, or it was not read. */
  document: string | null
  /** What is owed and what was paid: `PaymentFacts`. */
  payment: string
}

export interface InvoiceQuery extends InvoiceFilter {
  customer_id: string
  /** At least 1. Above the last page, the last page is meant. */
  page: number
  page_size: number
  /** Members that are added to each summary, as they are stored. Absent: none. */
  expand?: readonly Expansion[] | undefined
}

export interface Freshness {
  /** Until when the records are known to follow their source, in milliseconds; null before the first success. */
  synced_at: number | null
  /** A random text. The store's creation, a copy and a restored backup begin another; a version means nothing in another. */
  life: string
}

export interface Snapshot extends Freshness {
  /** Changes with every change of any of the customer's invoices; 0 for a customer without any. */
  version: number
}

/** A page, its total and its snapshot, all read at one moment. */
export interface InvoicePage extends Snapshot {
  total: number
  page: number
  /** The summaries' stored JSON texts, joined by commas; newest `issued_at` first, then highest `id`. */
  summaries: string
}

export type CustomerSums = Snapshot & {
  sums: InvoiceSum[]
  /** Sum of the credit notes in force of open invoices, by currency. */
  credited: ReadonlyMap<string, bigint>
  open: OpenSum[]
}

/** What a customer has to pay, all read at one moment. */
export interface OpenInvoices extends Snapshot {
  sums: OpenSum[]
  /** The first of them in the order of their due days: of those before a day, then those without, then the rest. */
  invoices: Omit<WalkedInvoice, 'lines'>[]
}

/** A part of a customer's account, all read at one moment. Entries are in the order of their days. */
export type AccountPage = Snapshot & FoundEntries

export interface StoredInvoice extends WalkedInvoice {
  synced_at: number | null
}

export type StoredRecord = InvoiceKey & Pick<WalkedInvoice, 'summary' | 'lines' | 'payment'>

/** How a stream of records from a source stands. Moments are in milliseconds. */
export interface Stream {
  name: string
  /** Where the next step begins, in the source's own terms; null at the beginning. */
  cursor: string | null
  /** When a run last reached its end; null before the first time. A run that is half done is no success. */
  succeeded_at: number | null
  /** When a run last failed, and why; null when the last run succeeded. */
  failed_at: number | null
  error: string | null
}

export interface KnownInvoice extends InvoiceKey {
  /** Null when the invoice was seen deleted. */
  summary: string | null
  observed_stamp: number
  /** When the answer had arrived: a question that was asked before may have been answered with an older or a newer state. */
  answered_stamp: number
  /** The record of its document beside it; null when it did not come from the payment platform. */
  claim: Claim | null
  document: string | null
  /** Null when the invoice was seen deleted. */
  payment: string | null
}

export interface StoredToken {
  id: string
  name: string
  /** SHA-256 of the token, in hexadecimal: the token itself is nowhere. */
  hash: string
  /** Null means all of them, as for a key. */
  customers: readonly string[] | null
  created_at: number
  expires_at: number | null
  revoked_at: number | null
}

/** A key that signs customer links. Whoever made it has the private half; the store has the public one. */
export interface StoredKey extends Pick<StoredToken, 'name' | 'customers' | 'created_at' | 'revoked_at'> {
  kid: string
  /** The public Ed25519 key, as the member `x` of a JWK: 32 bytes in base64url. */
  x: string
}

/** A token or a key as the API reads it. Its customers may be many: they are asked for one by one. */
type Scoped<T> = T & { every_customer: boolean }
export type TokenAccess = Scoped<Pick<StoredToken, 'id' | 'hash' | 'expires_at' | 'revoked_at'>>
export type KeyAccess = Scoped<Pick<StoredKey, 'kid' | 'x' | 'revoked_at'>>

export type InTurn = (search: () => Promise<InvoicePage>) => Promise<InvoicePage>

export interface ReadStore extends ChangeReads {
  /** A search among more than `searchedAtOnce` invoices costs far more than a page: `inTurn` runs it when its turn has come. */
  listInvoices(query: InvoiceQuery, inTurn?: InTurn): Promise<InvoicePage>
  readSums(customerId: string): Promise<CustomerSums>
  /** Open invoices, the sums of all and the first `openInvoicesShown`: overdue on a day before those that are not. */
  readOpen(customerId: string, day: string): Promise<OpenInvoices>
  readAccount(query: AccountQuery): Promise<AccountPage>
  readSnapshot(customerId: string): Promise<Snapshot>
  /** As in `Snapshot`. No customer's rows are needed for it. */
  readFreshness(): Promise<Freshness>
  /** Null unless the invoice exists and belongs to the customer: the two are indistinguishable. */
  findInvoice(customerId: string, invoiceId: string): Promise<StoredInvoice | null>
  findToken(id: string): Promise<TokenAccess | null>
  findKey(kid: string): Promise<KeyAccess | null>
  /** Whether a token or a key that is not for every customer is for this one. */
  coversCustomer(id: string, customerId: string): Promise<boolean>
  /** Empty for an engine without connections. */
  readConnections(): Promise<ConnectionUse[]>
  ping(): Promise<void>
  close(): Promise<void>
}

/** All that is written within one transaction: committed together, or not at all. */
export interface WriteTransaction extends DocumentWrites, ConnectorWrites, ContentsWrites {
  /**
   * Inserts or replaces each record whole, its lines included; returns how many differed. A later observation stays as it is:
   * `observedAt` is the stamp before the source was asked, `answeredAt` that after it had answered.
   */
  saveInvoices(
    records: readonly InvoiceRecord[],
    observedAt?: number | readonly number[],
    answeredAt?: number | readonly number[],
  ): Promise<number>
  /** Returns whether there was such an invoice. That it is gone is remembered, so that no older observation revives it. */
  deleteInvoice(
    customerId: string,
    invoiceId: string,
    observedAt?: number,
    answeredAt?: number,
  ): Promise<boolean>
  /** Removes an invoice from its former customer. Unlike a deletion it is not remembered: it may come back. */
  removeInvoice(customerId: string, invoiceId: string): Promise<void>
  /** Stored invoices, deleted ones included. Until the end, no other writer changes these customers. */
  findKnown(keys: readonly InvoiceKey[]): Promise<KnownInvoice[]>
  saveStream(stream: Stream): Promise<void>
  /** Records that a stream of records reached its end: the next run begins anew. */
  saveSuccess(stream: string, at: number): Promise<void>
  /** Removes changes that were committed before a moment in milliseconds, the oldest first; returns how many. */
  pruneChanges(before: number, limit: number): Promise<number>
  /** Saves progress since a cursor; false when the webhook is gone, was paused, or its cursor was moved meanwhile. */
  saveDelivery(id: string, since: number, delivery: Delivery): Promise<boolean>
}

export interface OperatorStore extends DocumentReads, ConnectorReads, ContentsReads, ChangeReads {
  /** Records of every customer, in the order of their keys, from the first one after a key. */
  readInvoices(after: InvoiceKey | null, limit: number): Promise<StoredRecord[]>
  /** So many invoices, drawn at random; all of them where there are fewer. */
  drawInvoices(count: number): Promise<InvoiceKey[]>
  /** Matching invoices by customer, in the order of lists, in batches. Of one moment; on Citus, those of each customer are. */
  walkInvoices(walk: InvoiceWalk): AsyncIterable<WalkedInvoice[]>
  /** Invoices that may still change and were last observed before a stamp, in the order of their keys, after one. */
  readUnsettled(after: InvoiceKey | null, limit: number, observedBefore: number): Promise<InvoiceKey[]>
  /** The latest stamp at which anything stored was observed; 0 before the first. */
  readLastObserved(): Promise<number>
  /** Number of wrong totals and counters. Nobody waits for it, and nothing is written. */
  checkCounts(onProgress?: OnRecounted): Promise<number>
  listStreams(): Promise<Stream[]>
  findCustomers(ids: readonly string[]): Promise<string[]>
  /** Customers with an invoice to this address, which is in lower case: 50 of them at most. */
  findCustomersByEmail(email: string): Promise<string[]>
  /** Newest first. */
  listTokens(): Promise<StoredToken[]>
  listKeys(): Promise<StoredKey[]>
  /** The oldest first. */
  listWebhooks(): Promise<OutgoingWebhook[]>
  close(): Promise<void>
}

export interface WriteStore extends OperatorStore, LeaseWrites, WebhookCommands {
  /** Of two that wait for each other, one is ended and its `work` called again: it must do nothing outside twice. */
  transaction<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T>
  /** Counts those customers again of whom something is wrong, and returns how much was. */
  repairCounts(onProgress?: OnRecounted): Promise<number>
  /** Begins another life: no ETag and no cursor that was given before is believed any more. */
  renewLife(): Promise<void>
  /** Fails when there is a token of that id. */
  saveToken(token: StoredToken): Promise<void>
  /** Null when there is no such token. Revoking twice keeps the first moment. */
  revokeToken(id: string, at: number): Promise<StoredToken | null>
  saveKey(key: StoredKey): Promise<void>
  revokeKey(kid: string, at: number): Promise<StoredKey | null>
}

/** How many invoices were looked at so far, and of how many; null when that is not known. */
export type OnRecounted = (invoices: number, of: number | null) => void

/** A moment of observation: in microseconds, so that every question has its own, however fast they come. */
export function observationStamp(milliseconds = Date.now()): number {
  return milliseconds * 1000
}

export function stampOf(observedAt: number | readonly number[], index: number): number {
  return typeof observedAt === 'number' ? observedAt : (observedAt[index] ?? 0)
}

export interface LockWait {
  patienceMs?: number
  /** Called once in a wait of over 2 s, with the path of the file that another process writes to. SQLite alone calls it. */
  onWait?(path: string): void
  /** Ends a wait, with its reason. SQLite alone looks at it. */
  signal?: AbortSignal
}

/** The connector's writer, and its lease: that waits for nobody long. */
export interface ConnectorStores {
  store: WriteStore
  leases: WriteStore
}

export interface ConnectorWait extends Pick<LockWait, 'onWait'> {
  leasePatienceMs: number
}

/** A store that cannot be used; the message advises what to do about it. */
export class StoreError extends Error {}

/** A store that cannot be read at the moment, but may be again shortly. */
export class StoreUnavailable extends StoreError {}

/** A store that answers, but slower than it is asked. */
export class StoreBusy extends StoreUnavailable {}

/** A store whose content is damaged or gone: only a backup helps. */
export class StoreDamaged extends StoreUnavailable {
  constructor(what: string, options?: ErrorOptions) {
    super(`${what}. Restore a backup: see docs/backup.md.`, options)
  }
}

/** The store has less than a process wrote to it, or read from it: nothing of it is believed until an operator says that it was restored. */
export class StoreWentBack extends StoreUnavailable {
  constructor(seen: 'wrote to it' | 'read from it') {
    super(
      `The store is older than what this process ${seen}: a former primary, a replica that was behind, or a restored backup. Bring the newer store back, or accept this one with: fatura migrate --restored. See docs/backup.md.`,
    )
  }
}

/** The store that was opened is not the one at its address any more: it has to be opened again. */
export class StoreReplaced extends StoreUnavailable {
  constructor(path: string) {
    super(`The database ${path} was replaced while it was open; nothing is written to the one before.`)
  }
}
