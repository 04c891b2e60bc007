/**
 * The store's three contracts, one for each role. `ReadStore` is for the API. `OperatorStore` is for commands that only read: status,
 * explain, reconcile, doctor and export. `WriteStore` is for the connector, the import and the token commands. The connections behind the
 * first two cannot write. Every engine fulfils all three contracts, and one test suite runs over all engines.
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

/** Filter of a pass over many invoices. Unlike the filter of a list, the bounds of `issued_at` may be any moments. */
export interface InvoiceWalk extends InvoiceFilter {
  /** Customers whose invoices are read. Null means all customers. */
  customers: readonly string[] | null
  withLines: boolean
}

/** Stored JSON texts of an invoice. */
export interface WalkedInvoice {
  summary: string
  /** JSON text of the lines. Null when the lines are unknown or were not requested. */
  lines: string | null
  /** The linked document. Null when there is none or it was not read. */
  document: string | null
  /** JSON text of `PaymentFacts`: the amounts owed and paid. */
  payment: string
}

export interface InvoiceQuery extends InvoiceFilter {
  customer_id: string
  /** Page number, at least 1. A number above the last page means the last page. */
  page: number
  page_size: number
  /** Values of `expand` whose stored texts are added to each summary. Absent means none. */
  expand?: readonly Expansion[] | undefined
}

export interface Freshness {
  /** Time in milliseconds up to which the records are known to match their source. Null before the first success. */
  synced_at: number | null
  /** Random text that identifies one life of the store. Creating, copying or restoring a store begins a new life. */
  life: string
}

export interface Snapshot extends Freshness {
  /** Version of the customer's data, which changes with every change of an invoice. 0 for a customer without invoices. */
  version: number
}

/** A page of a list with its total, the customer's version and the store's freshness, all read at one moment. */
export interface InvoicePage extends Snapshot {
  total: number
  page: number
  /**
   * Stored JSON texts of the summaries, joined by commas. Sorted by `issued_at` and then by `id`, both descending. With `expand`, the texts are
   * lines: after each summary stands one line for each of `expansions`. The line of taxes is empty unless `expand` names them.
   */
  summaries: string
}

export type CustomerSums = Snapshot & {
  sums: InvoiceSum[]
  /** Sum of the credit notes in force of open invoices. The key is the currency. */
  credited: ReadonlyMap<string, bigint>
  open: OpenSum[]
}

export interface OpenInvoices extends Snapshot {
  sums: OpenSum[]
  /** The first `openInvoicesShown` open invoices. Overdue invoices come first, then invoices without a due day, then the rest. */
  invoices: Omit<WalkedInvoice, 'lines'>[]
}

/** A page of a customer's account, all read at one moment. Entries are sorted by day. */
export type AccountPage = Snapshot & FoundEntries

export interface StoredInvoice extends WalkedInvoice {
  synced_at: number | null
}

export type StoredRecord = InvoiceKey & Pick<WalkedInvoice, 'summary' | 'lines' | 'payment'>

/** Progress of reading one stream of records from a source. Times are in milliseconds. */
export interface Stream {
  name: string
  /** Position where the next step begins, in the source's own format. Null at the beginning. */
  cursor: string | null
  /** Time when a run last reached the end of the stream. Null before the first time. An unfinished run is no success. */
  succeeded_at: number | null
  /** Time when the last run failed. Null when the last run succeeded. */
  failed_at: number | null
  error: string | null
}

export interface KnownInvoice extends InvoiceKey {
  /** JSON text of the summary. Null when the invoice was seen deleted. */
  summary: string | null
  observed_stamp: number
  /** Stamp taken after the answer had arrived. If another question was asked before this stamp, its answer may be older or newer. */
  answered_stamp: number
  /** The payment platform's record of the document. Null when the invoice did not come from the payment platform. */
  claim: Claim | null
  document: string | null
  /** JSON text of `PaymentFacts`. Null when the invoice was seen deleted. */
  payment: string | null
}

export interface StoredToken {
  id: string
  name: string
  /** SHA-256 of the token, in hexadecimal. The token itself is never stored. */
  hash: string
  /** Customers for whom the token is valid. Null means all customers. */
  customers: readonly string[] | null
  created_at: number
  expires_at: number | null
  revoked_at: number | null
}

/** A key that signs customer links. The store has only the public half. The private half stays with the creator of the key. */
export interface StoredKey extends Pick<StoredToken, 'name' | 'customers' | 'created_at' | 'revoked_at'> {
  kid: string
  /** The public Ed25519 key, 32 bytes in base64url, as in the member `x` of a JWK. */
  x: string
}

/** A token or key as the API reads it. Its customers may be many, so `coversCustomer` looks up one of them when needed. */
type Scoped<T> = T & { every_customer: boolean }
export type TokenAccess = Scoped<Pick<StoredToken, 'id' | 'hash' | 'expires_at' | 'revoked_at'>>
export type KeyAccess = Scoped<Pick<StoredKey, 'kid' | 'x' | 'revoked_at'>>

export type InTurn = (search: () => Promise<InvoicePage>) => Promise<InvoicePage>

export interface ReadStore extends ChangeReads {
  /** Reads one page of a list. `inTurn` runs a search among more than `searchedAtOnce` invoices when a slot is free. */
  listInvoices(query: InvoiceQuery, inTurn?: InTurn): Promise<InvoicePage>
  readSums(customerId: string): Promise<CustomerSums>
  /** Reads the sums of all open invoices and the first `openInvoicesShown` of them. Those overdue on `day` come first. */
  readOpen(customerId: string, day: string): Promise<OpenInvoices>
  readAccount(query: AccountQuery): Promise<AccountPage>
  readSnapshot(customerId: string): Promise<Snapshot>
  /** Reads the store's freshness and life. Needs no customer's rows. */
  readFreshness(): Promise<Freshness>
  /** Returns null when the invoice does not exist or belongs to another customer. The caller cannot tell these two cases apart. */
  findInvoice(customerId: string, invoiceId: string): Promise<StoredInvoice | null>
  findToken(id: string): Promise<TokenAccess | null>
  findKey(kid: string): Promise<KeyAccess | null>
  /** Tells whether this customer is in the list of a token or key that is not valid for every customer. */
  coversCustomer(id: string, customerId: string): Promise<boolean>
  /** Returns the use of database connections. Empty for an engine without connections. */
  readConnections(): Promise<ConnectionUse[]>
  ping(): Promise<void>
  close(): Promise<void>
}

/** All writes of one transaction. They are committed together or not at all. */
export interface WriteTransaction extends DocumentWrites, ConnectorWrites, ContentsWrites {
  /**
   * Inserts or replaces records with their lines, and returns how many differed from the stored ones. A record that was observed later
   * stays unchanged. `observedAt` is the stamp before the source was asked. `answeredAt` is the stamp after it answered.
   */
  saveInvoices(
    records: readonly InvoiceRecord[],
    observedAt?: number | readonly number[],
    answeredAt?: number | readonly number[],
  ): Promise<number>
  /** Deletes an invoice and returns whether it existed. A tombstone stays, so that no older observation restores it. */
  deleteInvoice(
    customerId: string,
    invoiceId: string,
    observedAt?: number,
    answeredAt?: number,
  ): Promise<boolean>
  /** Removes an invoice from its former customer. No tombstone is kept, because the invoice may come back. */
  removeInvoice(customerId: string, invoiceId: string): Promise<void>
  /** Returns stored invoices, deleted ones included. No other writer changes the invoices' customers until the transaction ends. */
  findKnown(keys: readonly InvoiceKey[]): Promise<KnownInvoice[]>
  saveStream(stream: Stream): Promise<void>
  /** Records that a stream was read to its end. The next run starts at the beginning. */
  saveSuccess(stream: string, at: number): Promise<void>
  /** Removes changes that were committed before a moment in milliseconds, the oldest first. Returns how many were removed. */
  pruneChanges(before: number, limit: number): Promise<number>
  /** Saves a webhook's progress since a cursor. Returns false when the webhook is gone or paused, or has another cursor. */
  saveDelivery(id: string, since: number, delivery: Delivery): Promise<boolean>
}

export interface OperatorStore extends DocumentReads, ConnectorReads, ContentsReads, ChangeReads {
  /** Returns records of all customers, sorted by key, starting behind the key `after`. */
  readInvoices(after: InvoiceKey | null, limit: number): Promise<StoredRecord[]>
  /** Returns `count` random invoices. Returns all invoices when the store has fewer. */
  drawInvoices(count: number): Promise<InvoiceKey[]>
  /** Yields matching invoices in batches, by customer and in list order, all of one moment. On Citus, of one moment per customer. */
  walkInvoices(walk: InvoiceWalk): AsyncIterable<WalkedInvoice[]>
  /** Returns invoices that may still change and were last observed before a stamp, sorted by key, starting behind `after`. */
  readUnsettled(after: InvoiceKey | null, limit: number, observedBefore: number): Promise<InvoiceKey[]>
  /** Returns the latest stamp of all observations in the store. Returns 0 before the first observation. */
  readLastObserved(): Promise<number>
  /** Returns the number of wrong totals and counters. Takes no locks and writes nothing. */
  checkCounts(onProgress?: OnRecounted): Promise<number>
  listStreams(): Promise<Stream[]>
  findCustomers(ids: readonly string[]): Promise<string[]>
  /** Returns at most 50 customers that have an invoice to this e-mail address. The address must be in lower case. */
  findCustomersByEmail(email: string): Promise<string[]>
  /** Returns all tokens, the newest first. */
  listTokens(): Promise<StoredToken[]>
  listKeys(): Promise<StoredKey[]>
  /** Returns all webhooks, the oldest first. */
  listWebhooks(): Promise<OutgoingWebhook[]>
  close(): Promise<void>
}

export interface WriteStore extends OperatorStore, LeaseWrites, WebhookCommands {
  /**
   * Runs `work` in a transaction. When two transactions wait for each other, one is rolled back and its `work` runs again. `work` must
   * therefore change nothing outside the transaction.
   */
  transaction<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T>
  /** Corrects wrong totals and counters of customers by counting the rows. Returns how many were wrong. */
  repairCounts(onProgress?: OnRecounted): Promise<number>
  /** Begins a new life of the store. ETags and cursors of earlier lives become invalid. */
  renewLife(): Promise<void>
  /** Fails when a token with this ID exists. */
  saveToken(token: StoredToken): Promise<void>
  /** Returns null when there is no such token. A second revocation keeps the time of the first. */
  revokeToken(id: string, at: number): Promise<StoredToken | null>
  saveKey(key: StoredKey): Promise<void>
  revokeKey(kid: string, at: number): Promise<StoredKey | null>
}

/** Reports how many invoices were checked so far and how many there are. The second number is null when unknown. */
export type OnRecounted = (invoices: number, of: number | null) => void

/** Converts milliseconds to a stamp in microseconds. Each of many quick requests can then have a stamp of its own. */
export function observationStamp(milliseconds = Date.now()): number {
  return milliseconds * 1000
}

export function stampOf(observedAt: number | readonly number[], index: number): number {
  return typeof observedAt === 'number' ? observedAt : (observedAt[index] ?? 0)
}

export interface LockWait {
  patienceMs?: number
  /** Called once when a wait exceeds 2 seconds, with the path of the file that another process writes to. Only SQLite calls it. */
  onWait?(path: string): void
  /** Aborting this signal ends a wait and throws the signal's reason. Only SQLite uses it. */
  signal?: AbortSignal
}

/** The connector's writer, and a second writer that renews the lease and never waits long. */
export interface ConnectorStores {
  store: WriteStore
  leases: WriteStore
}

export interface ConnectorWait extends Pick<LockWait, 'onWait'> {
  leasePatienceMs: number
}

/** A store that cannot be used. The message says what to do about it. */
export class StoreError extends Error {}

/** A store that cannot be read at the moment, but may be readable again soon. */
export class StoreUnavailable extends StoreError {}

/** A store that answers more slowly than requests arrive. */
export class StoreBusy extends StoreUnavailable {}

/** A store whose content is damaged or lost. Only a backup helps. */
export class StoreDamaged extends StoreUnavailable {
  constructor(what: string, options?: ErrorOptions) {
    super(`${what}. Restore a backup: see docs/backup.md.`, options)
  }
}

/** The store holds less than this process wrote or read before. Nothing in it is trusted until an operator confirms a restore. */
export class StoreWentBack extends StoreUnavailable {
  constructor(seen: 'wrote to it' | 'read from it') {
    super(
      `The store is older than what this process ${seen}: a former primary, a replica that was behind, or a restored backup. Bring the newer store back, or accept this one with: fatura migrate --restored. See docs/backup.md.`,
    )
  }
}

/** The open file is no longer the one at the store's address. The store has to be opened again. */
export class StoreReplaced extends StoreUnavailable {
  constructor(path: string) {
    super(`The database ${path} was replaced while it was open. Nothing is written to the old one.`)
  }
}
