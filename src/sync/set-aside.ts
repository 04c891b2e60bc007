/** Set-aside records: records that could not be stored as they were answered. Each waits under a kind until it is fetched again. */
import {
  type DocumentRecordKind,
  documentRecordKinds,
  type InvoiceRecordKind,
  invoiceRecordKinds,
  overlappedKind,
  type RefusedKind,
  refusedKinds,
  type SetAside,
  waitingKind,
} from '../store/connector-store.ts'
import type { WriteTransaction } from '../store/store.ts'

/** Id under which all records without an id are set aside together. */
export const noId = ''

const minuteMs = 60_000

export type SetAsideKind = InvoiceRecordKind | DocumentRecordKind | RefusedKind

/** Pause before a set-aside record is fetched again, by kind. */
const pausesMs: Record<SetAsideKind, number> = {
  [overlappedKind]: 0,
  [waitingKind]: minuteMs / 2,
  invoice: 5 * minuteMs,
  // Most refused invoices stay refused, and every full list reads them anyway. So they are seldom fetched singly.
  refused: 60 * minuteMs,
  outdated: 60 * minuteMs,
  // Records of documents are fetched again in the following round over documents.
  document: 0,
  client: 0,
  relations: 0,
  field: 0,
}

/** Returns the time of the next fetch in milliseconds. Null for a record without an id, which cannot be fetched. */
export function dueAtOf(kind: SetAsideKind, id: string, now: number): number | null {
  return id === noId ? null : now + pausesMs[kind]
}

export const invoiceKinds: readonly SetAsideKind[] = [...invoiceRecordKinds, ...refusedKinds]

export interface Wanted {
  kind: SetAsideKind
  reason: string
}

/**
 * Tells how an answer changes the set-aside rows of its record. `wanted` is the row that the record gets. It is null when the answer passed
 * the checks.
 */
export function replaceSetAside(
  rows: readonly SetAside[],
  askedAt: number,
  wanted: Wanted | null,
): { cleared: SetAside[]; asked_stamp: number } {
  const lastAskedAt = Math.max(0, ...rows.map(({ asked_stamp }) => asked_stamp))
  // An answer does not clear a row that was set aside by a later question.
  if (wanted === null && askedAt < lastAskedAt) return { cleared: [], asked_stamp: lastAskedAt }
  return {
    cleared: rows.filter(({ kind }) => kind !== wanted?.kind),
    asked_stamp: Math.max(askedAt, lastAskedAt),
  }
}

/**
 * What an answer says about a record: when it was asked for, and under which kind and reason the record is to be set aside. `wanted` is null
 * when the record passed the checks, or is gone.
 */
export interface AskedRecord {
  askedAt: number
  wanted: Wanted | null
}

/** Sets each record aside once, under the kind of its last answer. Returns the ids of records that were set aside before. */
export async function saveSetAside(
  tx: WriteTransaction,
  system: string,
  kinds: readonly SetAsideKind[],
  records: ReadonlyMap<string, AskedRecord>,
): Promise<Set<string>> {
  if (records.size === 0) return new Set()
  const isAbout = (row: SetAside) => row.system === system && (kinds as readonly string[]).includes(row.kind)
  const rows = Map.groupBy((await tx.findSetAside([...records.keys()])).filter(isAbout), ({ id }) => id)
  const cleared: SetAside[] = []
  for (const [id, { askedAt, wanted }] of records) {
    const change = replaceSetAside(rows.get(id) ?? [], askedAt, wanted)
    cleared.push(...change.cleared)
    if (wanted === null) continue
    const due_at = dueAtOf(wanted.kind, id, Date.now())
    await tx.setAside({ system, id, ...wanted, asked_stamp: change.asked_stamp, due_at }, Date.now())
  }
  if (cleared.length > 0) await tx.clearSetAside(cleared)
  return new Set(rows.keys())
}

export function isRefusedKind(kind: string): kind is RefusedKind {
  return (refusedKinds as readonly string[]).includes(kind)
}

export function isDocumentKind(kind: string): kind is DocumentRecordKind {
  return (documentRecordKinds as readonly string[]).includes(kind)
}
