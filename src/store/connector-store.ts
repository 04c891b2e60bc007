/** The connector's own part of the contract: whose data it is, which process may write, and records that did not fit. */
import type { InvoiceKey } from '../domain/invoice.ts'

/** An account of an upstream system. The records of that system all come from it. */
export interface BoundAccount {
  system: string
  /** The system's own name for the account. */
  account: string
  /** In milliseconds. */
  bound_at: number
}

/** The process that may write as the connector. No clock is compared: a process that waits takes over when `beats` stood still. */
export interface Lease {
  /** The holder's name for people; null when nobody holds it. */
  holder: string | null
  /** Grows with every holder: a late commit of an earlier one is recognized by it. */
  epoch: number
  /** Grows for as long as the holder lives, and with each of its commits. */
  beats: number
  /** The store's life: a restored backup begins another. */
  life: string
}

/** A record of an upstream system that could not be stored as it was answered. It is asked for again later, and nothing waits for it. */
export interface SetAside {
  system: string
  kind: string
  id: string
  reason: string
  /** The stamp before the last question about it; 0 when it is not known. */
  asked_stamp: number
  /** In milliseconds: when it is asked for again; null when that is not by itself. */
  due_at: number | null
  /** In milliseconds: when it was first and last set aside. */
  first_at: number
  last_at: number
  tries: number
}

/** Kinds of invoices that fit and are not stored as they are now. Their reason is a word. */
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

/** Kind of invoices that are to be looked at again once all of the store is in reach. */
export const waitingKind = 'waiting'

/** Kind of invoices of which two answers differ, and either may be the newer one. */
export const overlappedKind = 'overlapped'

export const invoiceRecordKinds = ['invoice', waitingKind, overlappedKind] as const
export const documentRecordKinds = ['document', 'client', 'relations', 'field'] as const

/** Kinds of records that are set aside, but for the refused ones, by system. */
export const setAsideKinds = {
  stripe: invoiceRecordKinds,
  invoicexpress: documentRecordKinds,
  deletion_guard: ['deletion', 'lost_document'],
} as const

export type InvoiceRecordKind = (typeof invoiceRecordKinds)[number]
export type DocumentRecordKind = (typeof documentRecordKinds)[number]

export type SetAsideKey = Pick<SetAside, 'system' | 'kind' | 'id'>

/** Systems whose records lists look at again. */
export const recheckedSystems = ['stripe', 'invoicexpress'] as const

/** What lists of everything looked at again within a day, and what of it they had to correct though nothing had announced it. */
export interface Recheck {
  system: string
  checked: number
  corrected: number
}

/** An invoice that a list corrected: an event about it may be on its way. */
export interface Correction extends InvoiceKey {
  /** In milliseconds. */
  found_at: number
}

/** Losses of an invoice: a draft itself, an invoice its document. */
export type Loss = (typeof setAsideKinds.deletion_guard)[number]

export interface SetAsideCount {
  system: string
  kind: string
  /** Null unless the kind is a refused one. */
  reason: string | null
  count: number
}

export interface ConnectorReads {
  listBoundAccounts(): Promise<BoundAccount[]>
  readLease(): Promise<Lease>
  /** Records tried longest ago first, unless the newest are wanted; of one system when one is given. */
  listSetAside(
    limit: number,
    system?: string,
    options?: Partial<Pick<SetAside, 'kind' | 'id' | 'reason'>> & { dueAt?: number; newestFirst?: boolean },
  ): Promise<SetAside[]>
  /** Sums of the hour of a moment and the 23 hours before it, by system. */
  readRechecks(at: number): Promise<Recheck[]>
  listCorrections(): Promise<Correction[]>
  /** How many paid invoices, issued before a moment in milliseconds, have no document in force though they need one. */
  countUncertified(issuedBefore: number): Promise<number>
  /** How many are set aside, by system and kind; those of a refused kind by reason, too. */
  countSetAside(): Promise<SetAsideCount[]>
  /** Customers together whose rows one node holds; null where one server holds all. Asks none of these nodes. */
  groupByNode(customers: readonly string[]): Promise<string[][] | null>
}

/** Each is a transaction of its own. */
export interface LeaseWrites {
  /** Takes the lease over from what was seen of it; null when it changed since. */
  takeLease(seen: Lease, holder: string): Promise<Lease | null>
  /** Shows that the holder lives. Returns the beats so far; null when the lease is another's by now. */
  renewLease(epoch: number): Promise<number | null>
  /** Lets the next one have it at once. Does nothing when it is another's by now. */
  releaseLease(epoch: number): Promise<void>
}

export interface ConnectorWrites {
  /** Adds a beat, which nobody else does until the transaction ends. Returns the beats so far; null when the lease is another's by now. */
  beatLease(epoch: number): Promise<number | null>
  saveBoundAccount(account: BoundAccount): Promise<void>
  /** How many drafts there are, or how many invoices with a document. */
  countAtRisk(loss: Loss): Promise<number>
  /** Adds to the hour of a moment, and forgets what is older than a week. */
  addRecheck(recheck: Recheck, at: number): Promise<void>
  /** Of one that is there already, the moment changes. */
  saveCorrections(corrections: readonly Correction[]): Promise<void>
  /** Removes those found until a moment; returns those that were there. */
  removeCorrections(ids: readonly string[], foundUntil?: number): Promise<InvoiceKey[]>
  /** By their ids, of whatever system and kind. */
  findSetAside(ids: readonly string[]): Promise<SetAside[]>
  listSetAsideIds(system: string, kind: string): Promise<string[]>
  setAside(
    record: SetAsideKey & Pick<SetAside, 'reason' | 'due_at'> & Partial<Pick<SetAside, 'asked_stamp'>>,
    at: number,
  ): Promise<void>
  clearSetAside(keys: readonly SetAsideKey[]): Promise<void>
}
