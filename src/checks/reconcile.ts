/** Differences between the payment platform and the invoicing system about an invoice. Pure. */

import { type Claim, copyStatus, type Document, isInForce, noClaim, originalStatusOf } from '../document.ts'
import type { Invoice } from '../invoice.ts'
import {
  findClaimRefusal,
  ignoredBecause,
  invoiceIdOf,
  isGone,
  isSameTaxId,
  type LinkRules,
  referenceOf,
} from '../linking/link.ts'
import { writeAmount } from '../money.ts'
import type { SourceIdentity } from '../sources.ts'
import type { Claimed, KnownDocument, LinkedInvoice } from '../store/document-store.ts'
import { compareCharged, describeCharged } from './compare-amounts.ts'

export const differenceKinds = [
  'paid_without_document',
  'paid_not_settled',
  'several_documents',
  'document_on_void',
  'total_differs',
  'currency_unknown',
  'stuck_creating',
  'failed',
  'claim_contradicted',
  'claimed_twice',
  'tax_id_differs',
  'document_of_unknown_invoice',
  'document_without_invoice',
] as const

/** Kinds that only a comparison with a SAF-T file finds, beside some of the others. */
export const saftKinds = [
  'not_in_store',
  'not_in_saft',
  'paid_not_in_saft',
  'canceled_in_one',
  'number_differs',
  'date_differs',
  'number_twice',
  'numbers_missing',
  'saft_totals_differ',
] as const
export type DifferenceKind = (typeof differenceKinds)[number] | (typeof saftKinds)[number]

/** The invoice's side and the document's side, null where there is none, and what is wrong, for people. */
export interface Difference extends ReturnType<typeof sidesOf> {
  kind: DifferenceKind
  detail: string
}

/** In the order of the kinds. `known` holds the documents that refer to the invoice or that it claims, `claimants` their claimants. */
export function findDifferences(
  linked: LinkedInvoice,
  known: readonly KnownDocument[],
  rules: LinkRules,
  platform: SourceIdentity,
  now: number,
  claimants: readonly Claimed[] = [],
): Difference[] {
  const invoice = JSON.parse(linked.summary) as Invoice
  const claim = linked.claim ?? noClaim
  const { ix_id } = invoice
  const document = ix_id !== null && linked.document?.id === ix_id ? linked.document.document : null
  const found: Difference[] = []
  const sides = { ...sidesOf(invoice, document), document_id: ix_id }
  const add = (kind: DifferenceKind, detail: string | null) => {
    if (detail !== null) found.push({ kind, ...sides, detail })
  }
  const refusal = findClaimRefusal(invoice, claim, known, claimants, rules)
  const documentStatus = document === null ? invoice.ix_status : statusOf(document, known)
  add('paid_without_document', findMissing(invoice, claim, documentStatus, rules))
  add('paid_not_settled', findUnsettled(invoice, document, documentStatus))
  if (linked.claim !== null) {
    const all = linked.document === null ? known : [linked.document, ...known]
    const ids = [ix_id, refusal === null ? claim.ix_id : null]
    add('several_documents', findSeveral(all, referenceOf(invoice.id, rules), ids))
  }
  add('document_on_void', findOnVoid(invoice, documentStatus))
  // The amounts of a canceled document need not be right.
  const isCounted = document !== null && documentStatus !== 'canceled' && documentStatus !== 'deleted'
  if (isCounted)
    for (const [kind, detail] of compareTotals(invoice, document, platform.name)) add(kind, detail)
  if (ignoredBecause(invoice, claim, rules) === null) {
    if (ix_id === null) add('stuck_creating', findStuck(invoice, claim, rules, now))
    if (refusal === null) add('failed', findFailure(invoice, claim))
    else add(refusal.kind, refusal.why)
  }
  if (isCounted) add('tax_id_differs', compareTaxIds(invoice, linked.client_tax_id, platform.name))
  return found
}

export function describeUnlinked(document: Document, rules: LinkRules): Difference {
  const invoiceId = invoiceIdOf(document.reference, rules)
  const { id, date, status, reference } = document
  const named = reference === null ? 'nothing' : `'${reference}'`
  const target = invoiceId === null ? named : `${invoiceId}, which is not in the store`
  return {
    kind: invoiceId === null ? 'document_without_invoice' : 'document_of_unknown_invoice',
    ...sidesOf(null, document),
    invoice_id: invoiceId,
    detail: `document ${id} of ${date ?? 'an unknown day'} is ${status}, and refers to ${target}`,
  }
}

/** In the order of the columns. `total_cents` is in the currency's smallest unit, `total` a decimal in its major unit, as the document's. */
export function sidesOf(invoice: Invoice | null, document: Document | null) {
  return {
    customer_id: invoice?.customer_id ?? null,
    customer_name: invoice?.display_name ?? null,
    invoice_id: invoice?.id ?? null,
    number: invoice?.number ?? null,
    issued_at: invoice?.issued_at ?? null,
    currency: invoice?.currency ?? null,
    total_cents: invoice?.total_cents ?? null,
    total: invoice === null ? null : writeAmount(invoice.total_cents, invoice.currency),
    document_id: document?.id ?? null,
    document_number: document?.number ?? null,
    document_status: document?.status ?? null,
    document_currency: document?.currency ?? null,
    document_total: document?.total ?? null,
  }
}

/** That of its original, where the document is a copy and its original is known. */
function statusOf(document: Document, known: readonly KnownDocument[]): string {
  const others = known.filter(each => !isGone(each)).flatMap(each => each.document ?? [])
  return originalStatusOf(document, others)
}

function findUnsettled({ status }: Invoice, document: Document | null, itsStatus: string | null) {
  if (status !== 'paid' || (itsStatus !== 'final' && itsStatus !== 'sent')) return null
  return `paid, but ${document === null ? 'its document' : `document ${document.id}`} is ${itsStatus}, and not settled`
}

/** More than one document in force certifies one sale twice. */
function findSeveral(known: readonly KnownDocument[], reference: string, ids: readonly (number | null)[]) {
  const names = new Map<number, string>()
  for (const each of known.toSorted((a, b) => a.id - b.id)) {
    const { document } = each
    if (document === null || isGone(each) || !isInForce(document)) continue
    if (document.reference === reference || ids.includes(document.id))
      names.set(document.id, `${document.id} (${document.status})`)
  }
  return names.size < 2 ? null : `documents ${[...names.values()].join(' and ')} are all in force`
}

function findMissing(invoice: Invoice, claim: Claim, itsStatus: string | null, rules: LinkRules) {
  const { status, ix_sync_state, ix_id } = invoice
  if (status !== 'paid') return null
  if (ix_sync_state === 'synced') {
    const name = ix_id === null ? 'its document' : `document ${ix_id}`
    if (itsStatus === 'draft') return `paid, but ${name} is a draft`
    if (itsStatus === copyStatus) return `paid, but ${name} is a second copy, and its original is not known`
    return itsStatus === 'canceled' || itsStatus === 'deleted' ? `paid, but ${name} is ${itsStatus}` : null
  }
  if (ix_sync_state !== 'not_synced' || ignoredBecause(invoice, claim, rules) !== null) return null
  return claim.ix_id === null
    ? 'paid, and there is no document'
    : `paid; document ${claim.ix_id} is recorded, but was never seen`
}

function findOnVoid({ status, ix_id }: Invoice, itsStatus: string | null): string | null {
  // Nobody knows whether a copy's original is canceled.
  const isOver = itsStatus === 'canceled' || itsStatus === 'deleted' || itsStatus === copyStatus
  if (status !== 'void' || ix_id === null || isOver) return null
  return `void, but document ${ix_id} is ${itsStatus ?? 'there'}`
}

function* compareTotals(
  { total_cents, currency }: Invoice,
  document: Document,
  platform: string,
): Generator<[DifferenceKind, string]> {
  const both = `${writeAmount(total_cents, currency)} ${currency} at ${platform}, ${describeCharged(document)} on the document`
  switch (compareCharged(total_cents, currency, document)) {
    case 'differs':
      return yield ['total_differs', both]
    case 'another currency':
      return yield ['total_differs', `${both}: another currency`]
    case 'unreadable':
      return yield ['total_differs', `${both}: the latter cannot be read`]
    case 'unknown currency':
      return yield ['currency_unknown', `${both}, which has no total in ${currency}${notYet(document)}`]
  }
}

/** Only a document that was read by itself certainly has no total in another currency. */
function notYet({ multicurrency }: Document): string {
  return multicurrency === undefined ? ' as far as it was read' : ''
}

function findStuck(invoice: Invoice, claim: Claim, rules: LinkRules, now: number): string | null {
  if (claim.state !== 'creating') return null
  const since = claim.attempted_at ?? invoice.issued_at
  if (now - Date.parse(since) <= rules.creatingTimeoutMs) return null
  return claim.attempted_at === null
    ? `creating since an unknown time; issued ${since}`
    : `creating since ${since}`
}

function findFailure({ ix_sync_state }: Invoice, claim: Claim): string | null {
  if (ix_sync_state !== 'failed' || claim.state === 'creating') return null
  return claim.state === 'failed' || claim.ix_id === null
    ? (claim.error ?? 'no reason is recorded')
    : `document ${claim.ix_id} is recorded, but the invoicing system no longer has it`
}

function compareTaxIds({ customer_tax_id }: Invoice, other: string | null | undefined, platform: string) {
  if (!customer_tax_id || other === undefined || isSameTaxId(customer_tax_id, other ?? '')) return null
  return `${customer_tax_id} at ${platform}, ${other || 'none'} of the document's client`
}
