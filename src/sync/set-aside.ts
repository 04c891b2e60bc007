/** Records that could not be stored as they were answered: under which kind each waits, and when it is asked for again. */
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

/** All records without an id are set aside as one, under this id. */
export const noId = ''

const minuteMs = 60_000

export type SetAsideKind = InvoiceRecordKind | DocumentRecordKind | RefusedKind

/** Pauses until a record is asked for again, by kind. */
const pausesMs: Record<SetAsideKind, number> = {
  [overlappedKind]: 0,
  [waitingKind]: minuteMs / 2,
  invoice: 5 * minuteMs,
  // Mostly they stay refused, and every list of everything shows them.
  refused: 60 * minuteMs,
  outdated: 60 * minuteMs,
  // With the next round over documents.
  document: 0,
  client: 0,
  relations: 0,
  field: 0,
}

/** In milliseconds; null for one that cannot be asked for, since it has no id. */
export function dueAtOf(kind: SetAsideKind, id: string, now: number): number | null {
  return id === noId ? null : now + pausesMs[kind]
}

/** All kinds of invoices. */
export const invoiceKinds: readonly SetAsideKind[] = [...invoiceRecordKinds, ...refusedKinds]

export interface Wanted {
  kind: SetAsideKind
  reason: string
}

/** What an answer changes of the rows under its id. `wanted` is null when it fits. */
export function replaceSetAside(
  rows: readonly SetAside[],
  askedAt: number,
  wanted: Wanted | null,
): { cleared: SetAside[]; asked_stamp: number } {
  const lastAskedAt = Math.max(0, ...rows.map(({ asked_stamp }) => asked_stamp))
  // An answer that was asked for earlier than the one that was set aside does not clear it.
  if (wanted === null && askedAt < lastAskedAt) return { cleared: [], asked_stamp: lastAskedAt }
  return {
    cleared: rows.filter(({ kind }) => kind !== wanted?.kind),
    asked_stamp: Math.max(askedAt, lastAskedAt),
  }
}

/** What an answer says of a record. `wanted` is null when it fits, or is gone. */
export interface AskedRecord {
  askedAt: number
  wanted: Wanted | null
}

/** A record is set aside once, under the kind of the last answer about it. Returns the ids of those that were set aside before. */
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
