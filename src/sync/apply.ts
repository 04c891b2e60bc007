/** Applies observations to stored records: newer ones win, in whatever order they arrive. */
import { isDeepStrictEqual } from 'node:util'
import {
  type Invoice,
  type InvoiceKey,
  type InvoiceRecord,
  type InvoiceStatus,
  invoiceFields,
  keyOf,
} from '../invoice.ts'
import { fieldsOf, usualRules } from '../linking/link.ts'
import { type Name, nameKey, namesOf, referencesTo } from '../linking/reference.ts'
import { invoicesNamedBy, paymentIds } from '../linking/related.ts'
import { changedFacts, completePaymentFacts, type PaymentFacts } from '../payment.ts'
import type { Observation } from '../sources.ts'
import type { RefusalReason } from '../store/connector-store.ts'
import type { Claimed, InvoiceNames, JournalEntry, JournalOutcome } from '../store/document-store.ts'
import { type KnownInvoice, stampOf, type WriteTransaction } from '../store/store.ts'
import { noGuard } from './deletion-guard.ts'
import { type LinkOptions, linkInvoices, readClaimed, relinkInvoices } from './link-invoices.ts'

/** `superseded`: older than an observation that was applied before. `refused`: not stored, by reason. */
export const nothingApplied = { changed: 0, deleted: 0, superseded: 0, refused: {} as Record<string, number> }
export type Applied = typeof nothingApplied

/** All records without an id are set aside as one, under this id. */
export const noId = ''

/** The event that led to a fetch, for the journal. */
export interface Cause extends Pick<JournalEntry, 'cause' | 'type' | 'happened_at'> {
  /** Entries of events that led to the same fetch. */
  others: readonly JournalEntry[]
}

export interface ApplyOptions extends Partial<LinkOptions> {
  /** Whether the request was made before the stored answer arrived: either may be newer, and neither moves an invoice back. */
  isOpen?(id: string): boolean
  /** Whether that answer was that there is no such invoice: its tombstone may be of another customer. */
  isGone?(id: string): boolean
  cause?: Cause | null
  /** `isStored`: as it was before. */
  onRefused?(id: string, reason: RefusalReason, isStored: boolean): void
  /** Of an invoice that is not as it is stored, or not stored: what the platform has of it differs. */
  onDifferent?(key: InvoiceKey): void
  /** Whether part of the store is out of reach: then links stay as they are, every observation has a customer, and none is a deletion. */
  isPartial?: boolean
}

/** Each invoice at most once. `askedAt` is the stamp before the request, of all or of each; equal stamps may overwrite. */
export async function applyObservations(
  tx: WriteTransaction,
  observations: readonly Observation[],
  askedAt: number | readonly number[],
  options: ApplyOptions = {},
): Promise<Applied> {
  const { isOpen = () => false, isGone = () => false, cause = null, onRefused, isPartial = false } = options
  const { onDifferent } = options
  const { rules = usualRules, guard = noGuard } = options
  const now = Date.now()
  const linking = { rules, guard, now }
  const applied: Applied = { ...nothingApplied, refused: {} }
  const entries: JournalEntry[] = [...(cause?.others ?? [])]
  const note = ({ customer_id, id }: InvoiceKey, outcome: JournalOutcome, detail: string) => {
    if (cause === null) return
    const { others, ...event } = cause
    entries.push({ customer_id, id, ...event, at: now, outcome, detail })
  }
  const invoices = isPartial ? [] : observations.map(({ id }) => id)
  // An id is one invoice at the platform, so it belongs to one customer here.
  const stored = Map.groupBy(await tx.findLinked({ invoices }), ({ id }) => id)
  const count = (reason: string) => {
    applied.refused[reason] = (applied.refused[reason] ?? 0) + 1
  }
  const refuse = (id: string, reason: RefusalReason) => {
    count(reason)
    onRefused?.(id, reason, stored.has(id))
  }
  const owned = observations.flatMap(({ id, customer_id, map }, index) => {
    // The platform may not return the customer of a deleted invoice, or return a later one: the stored one counts.
    const known = stored.get(id)?.at(-1)?.customer_id ?? null
    const owner = map === null ? (known ?? customer_id) : (customer_id ?? known)
    if (owner !== null) return [{ id, customer_id: owner, map, askedAt: stampOf(askedAt, index) }]
    if (map !== null) refuse(id, 'no_customer')
    return []
  })
  const keys = new Map([...owned, ...[...stored.values()].flat()].map(key => [keyOf(key), key]))
  const known = new Map((await tx.findKnown([...keys.values()])).map(invoice => [keyOf(invoice), invoice]))
  const records: InvoiceRecord[] = []
  const stamps: number[] = []
  const moved = new Map<string, string>()
  /** Keys of invoices that are no longer there: deleted, or now another customer's. */
  const left: InvoiceKey[] = []
  /** What other invoices may have gained or lost a document by. */
  const contested: Partial<InvoiceNames>[] = []
  const lost: Name[] = []
  for (const observation of owned) {
    const { id, customer_id, map, askedAt } = observation
    const tell = (outcome: JournalOutcome, detail: string) => note(observation, outcome, detail)
    const supersede = (why: string) => {
      applied.superseded++
      tell('superseded', why)
    }
    const before = known.get(keyOf(observation))
    const previous = readInvoice(before)
    const elsewhere = (stored.get(id) ?? [])
      .filter(other => other.customer_id !== customer_id)
      .flatMap(key => known.get(keyOf(key)) ?? [])
    const seenAt = [before, ...elsewhere].map(seen => seen?.observed_at ?? 0)
    const isTie = seenAt.includes(askedAt) || isOpen(id)
    if (Math.max(...seenAt) > askedAt) supersede('a later answer was applied already')
    else if (isTie && previous === null && (before !== undefined || (elsewhere.length === 0 && isGone(id))))
      supersede('it was deleted since')
    else if (map === null) {
      // Only a draft can be deleted. If another invoice is not found, the key is to blame.
      if (previous !== null && previous.status !== 'draft') {
        refuse(id, 'missing')
        tell('ignored', `not found, though it is ${previous.status}: only a draft can be deleted`)
      } else if (previous !== null && !(await guard.allows(tx, 'deletion', [observation]))) {
        count('held_back')
        tell('ignored', 'deleted, but the deletion guard holds it back because many were deleted at once')
      } else if (await tx.deleteInvoice(customer_id, id, askedAt)) {
        applied.deleted++
        onDifferent?.(observation)
        left.push(observation)
        if (previous?.ix_id) contested.push({ documents: [previous.ix_id] })
        lost.push(...lostNames(before, null))
        tell('applied', 'deleted')
      }
    } else {
      const record = map(previous, readFacts(before))
      const last = previous ?? readInvoice(elsewhere[0])
      if ('refusal' in record) {
        refuse(id, record.refusal)
        tell('ignored', `none of ours: ${record.refusal}`)
      } else if (isTie && last !== null && stages[record.invoice.status] < stages[last.status])
        supersede(`asked at the same time as an answer that was further: ${last?.status}`)
      else {
        for (const other of elsewhere) {
          await tx.removeInvoice(other.customer_id, other.id)
          left.push(other)
          moved.set(other.id, other.customer_id)
          record.invoice = { ...record.invoice, ...fieldsOf(readInvoice(other) ?? record.invoice) }
        }
        if (onDifferent && isDifferent(before, record)) onDifferent(record.invoice)
        records.push(record)
        stamps.push(askedAt)
        lost.push(...[before, ...elsewhere].flatMap(last => lostNames(last, record)))
      }
    }
  }
  const found = records.map(({ invoice }) => invoice)
  await guard.forget(tx, 'deletion', [...found, ...left])
  await guard.forget(tx, 'downgrade', left)
  const linked = isPartial
    ? { records: records.map(record => withoutTie(record, known.get(keyOf(record.invoice)))), contested: {} }
    : await linkRecords(tx, records, linking)
  applied.changed = await tx.saveInvoices(linked.records, stamps)
  contested.push(linked.contested, isPartial ? {} : await findLost(tx, lost, linking))
  await relinkInvoices(tx, joinNames(contested), 'claim', linking)
  if (cause !== null)
    for (const record of linked.records) {
      const { invoice } = record
      const change = describeChange(known.get(keyOf(invoice)), record)
      const from = moved.get(invoice.id)
      if (from !== undefined) note(invoice, 'applied', `it belonged to ${from} before`)
      // Of a customer's many invoices, the journal keeps only those that changed.
      else if (change !== null) note(invoice, 'applied', change)
      else if (observations.length === 1) note(invoice, 'unchanged', 'nothing differed from what was stored')
    }
  await tx.saveEntries(entries)
  return applied
}

/** Links records to their documents. Those without a claim are left as they are. */
async function linkRecords(tx: WriteTransaction, records: readonly InvoiceRecord[], options: LinkOptions) {
  const claimed = records.flatMap(record => toClaimed(record) ?? [])
  if (claimed.length === 0) return { records: [...records], contested: {} }
  const { linked, contested } = await linkInvoices(tx, claimed, options)
  const byKey = new Map(linked.map(link => [keyOf(link.invoice), link]))
  const withLinks = (record: InvoiceRecord): InvoiceRecord => {
    const { invoice = record.invoice, document = null } = byKey.get(keyOf(record.invoice)) ?? {}
    return { ...record, invoice, document }
  }
  return { records: records.map(withLinks), contested }
}

/** Null for a record without a claim. */
function toClaimed({ invoice, claim, payment }: InvoiceRecord): Claimed | null {
  return claim === undefined ? null : { invoice, claim, payments: paymentIds(payment) }
}

/** What is to be linked again when invoices that had names lose them: their documents may be another's now. */
async function findLost(
  tx: WriteTransaction,
  lost: readonly Name[],
  { rules }: LinkOptions,
): Promise<Partial<InvoiceNames>> {
  const references = [...new Set(referencesTo(lost, rules.references))]
  const found = references.length === 0 ? [] : await tx.findDocuments({ ids: [], references })
  const documents = found.flatMap(({ document }) => document ?? [])
  return { documents: documents.map(({ id }) => id), ...invoicesNamedBy(documents, rules) }
}

/** Names that an invoice had, and has no more; null stands for one that is deleted. An ID is its own for ever. */
function lostNames(before: KnownInvoice | undefined, record: InvoiceRecord | null): Name[] {
  const last = before === undefined ? null : readClaimed(before)
  const kept = record === null ? null : toClaimed(record)
  const names = new Set(kept === null ? [] : namesOf(kept).map(nameKey))
  if (last === null) return []
  return namesOf(last).filter(name => name.kind !== 'id' && !names.has(nameKey(name)))
}

function joinNames(all: readonly Partial<InvoiceNames>[]): InvoiceNames {
  return {
    documents: [...new Set(all.flatMap(({ documents = [] }) => documents))],
    invoices: [...new Set(all.flatMap(({ invoices = [] }) => invoices))],
    payments: [...new Set(all.flatMap(({ payments = [] }) => payments))],
    numbers: [...new Set(all.flatMap(({ numbers = [] }) => numbers))],
  }
}

/** Leaves out the claim of an invoice that has a document: it is compared with the document alone, which stays. */
function withoutTie({ claim, ...record }: InvoiceRecord, known: KnownInvoice | undefined): InvoiceRecord {
  if (claim !== undefined && record.invoice.ix_id === null) return { ...record, claim }
  return { ...record, document: known?.document ? JSON.parse(known.document) : null }
}

/** Lines are not compared. An invoice that did not come from the platform may be anything. */
function isDifferent(known: KnownInvoice | undefined, after: InvoiceRecord): boolean {
  if (known === undefined || known.summary === null) return true
  if (known.claim === null) return false
  return describeChange(known, after) !== null || !isDeepStrictEqual(known.claim, after.claim)
}

/** Null when nothing differs but the lines, which are not compared here. */
function describeChange(known: KnownInvoice | undefined, after: InvoiceRecord): string | null {
  const before = readInvoice(known)
  const { invoice, payment = completePaymentFacts(invoice) } = after
  if (before === null) return `new, ${invoice.status}`
  const names = [
    ...invoiceFields.filter(name => before[name] !== invoice[name]),
    ...changedFacts(readFacts(known) ?? payment, payment),
  ]
  if (names.length === 0) return null
  const others = names.filter(name => name !== 'status').join(', ')
  const status = before.status === invoice.status ? '' : `${before.status} → ${invoice.status}`
  return [status, others && `changed: ${others}`].filter(Boolean).join('; ')
}

/** The order of statuses in an invoice's life. */
const stages: Record<InvoiceStatus, number> = { draft: 0, open: 1, uncollectible: 2, paid: 3, void: 3 }

function readInvoice(known: KnownInvoice | undefined): Invoice | null {
  return known?.summary ? JSON.parse(known.summary) : null
}

function readFacts(known: KnownInvoice | undefined): PaymentFacts | null {
  return known?.payment ? JSON.parse(known.payment) : null
}

export function addApplied(a: Applied, b: Applied): Applied {
  const refused = { ...a.refused }
  for (const [reason, count] of Object.entries(b.refused)) refused[reason] = (refused[reason] ?? 0) + count
  return {
    changed: a.changed + b.changed,
    deleted: a.deleted + b.deleted,
    superseded: a.superseded + b.superseded,
    refused,
  }
}
