/**
 * Applies the platform's answers about invoices, within a transaction. Reads the stored invoices, lets `decide` decide,
 * and carries out the decisions. Losses pass the deletion guard. Every invoice is linked to its document again.
 */
import { type InvoiceKey, type InvoiceRecord, keyOf } from '../../domain/invoice.ts'
import type { Claimed, InvoiceNames } from '../../domain/link/known.ts'
import { type Name, nameKey, namesOf, referencesTo } from '../../domain/link/reference.ts'
import { invoicesNamedBy, paymentIds } from '../../domain/link/related.ts'
import type { KnownInvoice, WriteTransaction } from '../../store/store.ts'
import { type LinkOptions, linkInvoices, relinkInvoices } from '../link-invoices.ts'
import type { Wanted } from '../set-aside.ts'
import { type Decision, decide, type PriorInvoice, type StampedAnswer } from './decide.ts'
import { type Cause, countRefused, type Decided, findDifferent, wantedOf, writeJournal } from './outcomes.ts'

/**
 * Counts of applied answers. `overlapped`: the answer overlaps with another answer
 * about the invoice, and differs. `refused`: invoices that are not stored, by reason.
 */
export const nothingApplied = { changed: 0, deleted: 0, overlapped: 0, refused: {} as Record<string, number> }
export type Applied = typeof nothingApplied

export interface ApplyOptions extends LinkOptions {
  cause: Cause | null
  /**
   * True while part of the store is out of reach. Links then stay as they are. Every answer then has a customer, and none is a deletion.
   */
  isPartial: boolean
}

export interface Outcome {
  applied: Applied
  /** Ids of invoices that must be fetched again. */
  overlaps: string[]
  /** Why an invoice is set aside, by invoice id. Null when the answer passed the checks. */
  setAside: Map<string, Wanted | null>
  /** Invoices whose answer differs from the stored invoice. */
  different: InvoiceKey[]
}

type Saved = Extract<Decision, { action: 'save' }> & { answer: StampedAnswer }
type Gone = Extract<Decision, { action: 'delete' }> & { answer: StampedAnswer }

/** Applies answers. Each invoice may occur only once among the answers. */
export async function applyAnswers(
  tx: WriteTransaction,
  answers: readonly StampedAnswer[],
  options: ApplyOptions,
): Promise<Outcome> {
  const known = await readKnown(tx, answers, options.isPartial)
  const decided: Decided[] = answers.map(answer => {
    return { answer, decision: decide(answer, known.get(answer.id) ?? []) }
  })
  await holdBack(tx, decided, options)
  const [saved, gone] = [findSaved(decided), findGone(decided)]
  const deleted = await deleteGone(tx, gone)
  await removeFormer(tx, saved, gone, options)
  const { changed, claimedTwice } = await saveWithLinks(tx, saved, options)
  if (!options.isPartial) await relinkOthers(tx, saved, gone, claimedTwice, options)
  await tx.saveEntries(writeJournal(decided, options))
  const overlaps = decided.flatMap(({ answer, decision }) =>
    decision.action === 'overlap' ? [answer.id] : [],
  )
  return {
    applied: { changed, deleted, overlapped: overlaps.length, refused: countRefused(decided) },
    overlaps,
    setAside: new Map(decided.map(({ answer, decision }) => [answer.id, wantedOf(decision)])),
    different: decided.flatMap(({ decision }) => findDifferent(decision)),
  }
}

/**
 * Reads what is stored under each invoice id, for every customer that ever had the
 * invoice. The platform's ids are unique, so only one customer has the invoice now.
 */
async function readKnown(
  tx: WriteTransaction,
  answers: readonly StampedAnswer[],
  isPartial: boolean,
): Promise<Map<string, PriorInvoice[]>> {
  const ids = isPartial ? [] : answers.map(({ id }) => id)
  const own = answers.flatMap(({ id, customer_id }) => (customer_id === null ? [] : [{ customer_id, id }]))
  const others = [...(await tx.findLinked({ invoices: ids })), ...(await tx.findTombstones(ids))]
  const keys = new Map([...own, ...others].map(key => [keyOf(key), key]))
  return Map.groupBy((await tx.findKnown([...keys.values()])).map(readStored), ({ id }) => id)
}

function readStored({ customer_id, id, summary, payment, ...known }: KnownInvoice): PriorInvoice {
  const previous =
    summary === null ? null : { invoice: JSON.parse(summary), payment: JSON.parse(payment ?? 'null') }
  return {
    customer_id,
    id,
    previous,
    claim: known.claim,
    document: known.document,
    answeredAt: known.answered_stamp,
  }
}

/** Replaces deletions that the guard does not allow by held-back ones. */
async function holdBack(tx: WriteTransaction, decided: Decided[], { guard }: ApplyOptions): Promise<void> {
  for (const one of decided) {
    const { decision } = one
    if (decision.action !== 'delete' || !decision.before?.previous) continue
    if (!(await guard.allows(tx, 'deletion', [decision.key])))
      one.decision = { action: 'hold back', key: decision.key }
  }
}

function findSaved(decided: readonly Decided[]): Saved[] {
  return decided.flatMap(({ answer, decision }) =>
    decision.action === 'save' ? [{ ...decision, answer }] : [],
  )
}

function findGone(decided: readonly Decided[]): Gone[] {
  return decided.flatMap(({ answer, decision }) =>
    decision.action === 'delete' ? [{ ...decision, answer }] : [],
  )
}

/** Returns how many of the deleted invoices were stored. */
async function deleteGone(tx: WriteTransaction, gone: readonly Gone[]): Promise<number> {
  let deleted = 0
  for (const { answer, key } of gone)
    if (await tx.deleteInvoice(key.customer_id, key.id, answer.askedAt, answer.answeredAt)) deleted++
  return deleted
}

/** Removes moved invoices from their former customers. The guard no longer holds back losses of saved, deleted or moved invoices. */
async function removeFormer(
  tx: WriteTransaction,
  saved: readonly Saved[],
  gone: readonly Gone[],
  { guard }: ApplyOptions,
): Promise<void> {
  const moved = saved.flatMap(({ formerly }) => formerly)
  for (const { customer_id, id } of moved) await tx.removeInvoice(customer_id, id)
  const removed = [...gone.map(({ key }) => key), ...moved]
  await guard.forget(tx, 'deletion', [...saved.map(({ record }) => record.invoice), ...removed])
  await guard.forget(tx, 'lost_document', removed)
}

/** Returns the number of changed invoices, and the documents that several invoices claim. */
async function saveWithLinks(tx: WriteTransaction, saved: readonly Saved[], options: ApplyOptions) {
  const { records, claimedTwice } = options.isPartial
    ? { records: saved.map(keepDocument), claimedTwice: {} }
    : await linkRecords(tx, saved, options)
  const changed = await tx.saveInvoices(
    records,
    saved.map(({ answer }) => answer.askedAt),
    saved.map(({ answer }) => answer.answeredAt),
  )
  return { changed, claimedTwice }
}

/** Links other invoices again that gain or lose a document because of the saved and deleted invoices. */
async function relinkOthers(
  tx: WriteTransaction,
  saved: readonly Saved[],
  gone: readonly Gone[],
  claimedTwice: Partial<InvoiceNames>,
  options: ApplyOptions,
): Promise<void> {
  const freed = gone.flatMap(({ before }) => before?.previous?.invoice.ix_id ?? [])
  const lost = [
    ...saved.flatMap(({ before, formerly, record }) =>
      [before, ...formerly].flatMap(last => lostNames(last, record)),
    ),
    ...gone.flatMap(({ before }) => lostNames(before, null)),
  ]
  const touched = [claimedTwice, { documents: freed }, await findLost(tx, lost, options)]
  await relinkInvoices(tx, joinNames(touched), 'claim', options)
}

/** Links records to their documents. A record without a claim stays as it is. */
async function linkRecords(tx: WriteTransaction, saved: readonly Saved[], options: LinkOptions) {
  const claimed = saved.flatMap(({ record }) => toClaimed(record) ?? [])
  const { linked, claimedTwice } = await linkInvoices(tx, claimed, options)
  const byKey = new Map(linked.map(link => [keyOf(link.invoice), link]))
  const withLinks = ({ record }: Saved): InvoiceRecord => {
    const { invoice = record.invoice, document = null } = byKey.get(keyOf(record.invoice)) ?? {}
    return { ...record, invoice, document }
  }
  return { records: saved.map(withLinks), claimedTwice }
}

/**
 * Keeps the stored document while links cannot be derived. A new claim is saved only for an invoice without a document, because a claim and
 * its document are compared with each other.
 */
function keepDocument({ record: { claim, ...record }, before }: Saved): InvoiceRecord {
  if (claim !== undefined && record.invoice.ix_id === null) return { ...record, claim }
  return { ...record, document: before?.document ? JSON.parse(before.document) : null }
}

function toClaimed({ invoice, claim, payment }: InvoiceRecord): Claimed | null {
  return claim === undefined ? null : { invoice, claim, payments: paymentIds(payment) }
}

/**
 * Returns the documents and invoices that must be linked again because invoices lost the names `lost`. A document that refers to such a
 * name may belong to another invoice now.
 */
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

/**
 * Returns names that an invoice had and no longer has. `record` is null for a deleted
 * invoice. The invoice's own id is never lost, because no other invoice can have it.
 */
function lostNames(before: PriorInvoice | null, record: InvoiceRecord | null): Name[] {
  if (before === null || before.previous === null || before.claim === null) return []
  const { invoice, payment } = before.previous
  const kept = record === null ? null : toClaimed(record)
  const names = new Set(kept === null ? [] : namesOf(kept).map(nameKey))
  const last = { invoice, payments: paymentIds(payment ?? undefined) }
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

export function addApplied(a: Applied, b: Applied): Applied {
  const refused = { ...a.refused }
  for (const [reason, count] of Object.entries(b.refused)) refused[reason] = (refused[reason] ?? 0) + count
  return {
    changed: a.changed + b.changed,
    deleted: a.deleted + b.deleted,
    overlapped: a.overlapped + b.overlapped,
    refused,
  }
}
