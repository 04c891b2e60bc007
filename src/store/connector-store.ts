/** The connector's part of the store's contract: bound accounts, the lease, and records that were set aside. */
import type { InvoiceKey } from '../domain/invoice.ts'

/** An account of an upstream system. All records of this system come from this account. */
export interface BoundAccount {
  system: string
  /** The system's own name for the account. */
  account: string
  /** Time in milliseconds when the system was bound to the account. */
  bound_at: number
}

/**
 * The right of one process to write as the connector. No clocks are compared. A waiting process takes over when `beats` has stopped
 * growing.
 */
export interface Lease {
  /** The holder's name for people. Null when nobody holds the lease. */
  holder: string | null
  /** Fence token, which grows with every new holder. A late commit of an earlier holder is recognized by its smaller epoch. */
  epoch: number
  /** Grows as long as the holder lives, and with each of its commits. */
  beats: number
  /** Life of the store. A restored backup begins a new life. */
  life: string
}

/**
 * A record of an upstream system that could not be stored as it was answered. The connector asks for it again later. No other record waits
 * for it.
 */
export interface SetAside {
  system: string
  kind: string
  id: string
  reason: string
  /** Stamp taken before the record was last requested. 0 when unknown. */
  asked_stamp: number
  /** Time in milliseconds when the connector asks for the record again. Null when it does not do so by itself. */
  due_at: number | null
  /** Time in milliseconds when the record was first set aside. `last_at` is the time of the last try. */
  first_at: number
  last_at: number
  tries: number
}

/** Kinds of set-aside invoices that were readable but are not stored in their current state. Their reason is a single word. */
export const refusedKinds = ['refused', 'outdated'] as const
export type RefusedKind = (typeof refusedKinds)[number]

export const refusalReasons = [
  'no_customer',
  'invalid_customer',
  'unknown_status',
  'preview',
  'missing',
  'no_id',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** Kind of invoices that wait until every node of the database can be reached again. */
export const waitingKind = 'waiting'

/** Kind of invoices for which two overlapping answers differ. Either answer may be the newer one. */
export const overlappedKind = 'overlapped'

export const invoiceRecordKinds = ['invoice', waitingKind, overlappedKind] as const
export const documentRecordKinds = ['document', 'client', 'relations', 'field'] as const

/** Kinds of set-aside records by system. The refused kinds are not among them. */
export const setAsideKinds = {
  stripe: invoiceRecordKinds,
  invoicexpress: documentRecordKinds,
  deletion_guard: ['deletion', 'lost_document'],
} as const

export type InvoiceRecordKind = (typeof invoiceRecordKinds)[number]
export type DocumentRecordKind = (typeof documentRecordKinds)[number]

export type SetAsideKey = Pick<SetAside, 'system' | 'kind' | 'id'>

/** Systems whose records are checked again by lists of all records. */
export const recheckedSystems = ['stripe', 'invoicexpress'] as const

/** Result of checking a system's records again. `corrected` counts the records that had changed although no event announced it. */
export interface Recheck {
  system: string
  checked: number
  corrected: number
}

/** An invoice that a list of all invoices corrected. An event about the same change may still arrive. */
export interface Correction extends InvoiceKey {
  /** Time in milliseconds when the list found the difference. */
  found_at: number
}

/** Kinds of losses. A draft can be deleted, and an invoice can lose its document. */
export type Loss = (typeof setAsideKinds.deletion_guard)[number]

export interface SetAsideCount {
  system: string
  kind: string
  /** The reason of records of a refused kind. Null for records of all other kinds. */
  reason: string | null
  count: number
}

export interface ConnectorReads {
  listBoundAccounts(): Promise<BoundAccount[]>
  readLease(): Promise<Lease>
  /**
   * Returns set-aside records, of one system when `system` is given. Records that were tried longest ago come first, unless `newestFirst`
   * is set.
   */
  listSetAside(
    limit: number,
    system?: string,
    options?: Partial<Pick<SetAside, 'kind' | 'id' | 'reason'>> & { dueAt?: number; newestFirst?: boolean },
  ): Promise<SetAside[]>
  /** Returns the results of checks, summed by system. They cover the hour that contains `at` and the 23 hours before it. */
  readRechecks(at: number): Promise<Recheck[]>
  listCorrections(): Promise<Correction[]>
  /** Counts paid invoices that need a document but have none in force, issued before a moment in milliseconds. */
  countUncertified(issuedBefore: number): Promise<number>
  /** Counts set-aside records by system and kind. Refused kinds are also counted by reason. */
  countSetAside(): Promise<SetAsideCount[]>
  /** Groups customers whose rows lie on the same node. Returns null when one server holds all rows. The nodes themselves are not asked. */
  groupByNode(customers: readonly string[]): Promise<string[][] | null>
}

/** Writes of the lease. Each call is a transaction of its own. */
export interface LeaseWrites {
  /** Takes over the lease that was read as `seen`. Returns null when the lease has changed since. */
  takeLease(seen: Lease, holder: string): Promise<Lease | null>
  /** Shows that the holder lives. Returns the number of heartbeats, or null when another process holds the lease. */
  renewLease(epoch: number): Promise<number | null>
  /** Frees the lease, so that another process can take it at once. Does nothing when another process holds it already. */
  releaseLease(epoch: number): Promise<void>
}

export interface ConnectorWrites {
  /**
   * Shows that the holder lives, and raises the number of heartbeats by one. No other process can raise it until the transaction ends.
   * Returns the number of heartbeats, or null when another process holds the lease.
   */
  beatLease(epoch: number): Promise<number | null>
  saveBoundAccount(account: BoundAccount): Promise<void>
  /** Counts what a loss could affect: all drafts, or all invoices with a document. */
  countAtRisk(loss: Loss): Promise<number>
  /** Adds the result of a check to the sums of the hour that contains `at`. Removes sums that are older than a week. */
  addRecheck(recheck: Recheck, at: number): Promise<void>
  /** Saves corrections. If an invoice has a stored correction already, its time is replaced. */
  saveCorrections(corrections: readonly Correction[]): Promise<void>
  /** Removes corrections that were found up to a moment. Returns the removed corrections. */
  removeCorrections(ids: readonly string[], foundUntil?: number): Promise<InvoiceKey[]>
  /** Returns all set-aside records with one of the IDs, of any system and kind. */
  findSetAside(ids: readonly string[]): Promise<SetAside[]>
  listSetAsideIds(system: string, kind: string): Promise<string[]>
  setAside(
    record: SetAsideKey & Pick<SetAside, 'reason' | 'due_at'> & Partial<Pick<SetAside, 'asked_stamp'>>,
    at: number,
  ): Promise<void>
  clearSetAside(keys: readonly SetAsideKey[]): Promise<void>
}
