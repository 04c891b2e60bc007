/** Finds the differences between the payment platform and the invoicing system about an invoice. Pure. */

import {
  type Claim,
  copyStatus,
  type Document,
  isInForce,
  nameDocument,
  noClaim,
  originalStatusOf,
} from '../../domain/document.ts'
import type { Invoice } from '../../domain/invoice.ts'
import type { Claimed, KnownDocument } from '../../domain/link/known.ts'
import {
  findClaimRefusal,
  findObstacle,
  ignoredBecause,
  isGone,
  isNobody,
  isSameTaxId,
  isTiedByName,
  type LinkRules,
} from '../../domain/link/link.ts'
import { writeAmount } from '../../domain/money.ts'
import type { SourceIdentity } from '../../sources/source.ts'
import type { LinkedInvoice } from '../../store/document-store.ts'
import { isCredited } from './compare-credits.ts'
import { compareWithDocument } from './compare-with-document.ts'
import {
  type DifferenceKind,
  defaultLimits,
  differenceKinds,
  type Finding,
  type Limits,
} from './difference-kinds.ts'

/** A difference with both sides. Fields of a missing side are null. `detail` describes the difference for people. */
export interface Difference extends ReturnType<typeof sidesOf> {
  kind: DifferenceKind
  detail: string
}

/**
 * Returns the differences, ordered by kind. `known` holds the documents that name the invoice or that its claim names. `claimants` are all
 * invoices that may own such a document.
 */
export function findDifferences(
  linked: LinkedInvoice,
  known: readonly KnownDocument[],
  rules: LinkRules,
  platform: SourceIdentity,
  now: number,
  claimants: readonly Claimed[] = [],
  limits: Limits = defaultLimits,
): Difference[] {
  const invoice = JSON.parse(linked.summary) as Invoice
  const claim = linked.claim ?? noClaim
  const { ix_id } = invoice
  const document = ix_id !== null && linked.document?.id === ix_id ? linked.document.document : null
  const sides = { ...sidesOf(invoice, document), document_id: ix_id }
  const refusal = findClaimRefusal(invoice, claim, known, claimants, rules)
  const documentStatus = document === null ? invoice.ix_status : statusOf(document, known)
  const relations = known.find(({ id }) => id === ix_id)?.relations ?? null
  const [obstacle = null] = known.flatMap(each => findObstacle(each, invoice, claimants, rules) ?? [])
  const found: (Finding | null)[] = [
    findMissing(invoice, claim, documentStatus, rules, obstacle),
    findUnsettled(invoice, document, documentStatus),
  ]
  if (document === null || !isCredited(invoice, document, relations))
    found.push(findOnVoid(invoice, documentStatus))
  if (linked.claim !== null) {
    const all = linked.document === null ? known : [linked.document, ...known]
    const ids = [ix_id, refusal === null ? claim.ix_id : null]
    const isOwn = (each: KnownDocument) =>
      ids.includes(each.id) || isTiedByName(each, invoice, claimants, rules)
    found.push(findSeveral(all.filter(isOwn)))
  }
  // A canceled document is not compared, because its amounts no longer matter.
  if (document !== null && documentStatus !== 'canceled' && documentStatus !== 'deleted') {
    const pair = { invoice, facts: linked.payment, document, status: documentStatus ?? '', relations }
    found.push(...compareWithDocument(pair, limits, platform.name))
    found.push(compareTaxIds(invoice, document, linked.client_tax_id, platform.name))
  }
  if (ignoredBecause(invoice, claim, rules) === null) {
    if (ix_id === null) found.push(findStuck(invoice, claim, rules, now))
    found.push(refusal === null ? findFailure(invoice, claim) : [refusal.kind, refusal.why])
  }
  return found
    .filter(each => each !== null)
    .map(([kind, detail]) => ({ kind, ...sides, detail }))
    .sort((a, b) => orderOf(a.kind) - orderOf(b.kind))
}

const order = new Map<DifferenceKind, number>(differenceKinds.map((kind, index) => [kind, index]))
const orderOf = (kind: DifferenceKind) => order.get(kind) ?? order.size

/**
 * The order of the fields is the order of the columns. `total_cents` is in the smallest unit of the currency. `total` is a decimal like the
 * document's total.
 */
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

/** Returns the document's status. For a second copy with a known original, returns the original's status. */
function statusOf(document: Document, known: readonly KnownDocument[]): string {
  const others = known.filter(each => !isGone(each)).flatMap(each => each.document ?? [])
  return originalStatusOf(document, others)
}

function findUnsettled(
  { status }: Invoice,
  document: Document | null,
  itsStatus: string | null,
): Finding | null {
  if (status !== 'paid' || (itsStatus !== 'final' && itsStatus !== 'sent')) return null
  const name = document === null ? 'its document' : `document ${document.id}`
  return ['paid_not_settled', `paid, but ${name} is ${itsStatus}, and not settled`]
}

/** Two documents in force certify the same sale twice. */
function findSeveral(known: readonly KnownDocument[]): Finding | null {
  const names = new Map<number, string>()
  for (const each of known.toSorted((a, b) => a.id - b.id)) {
    const { document } = each
    if (document !== null && !isGone(each) && isInForce(document))
      names.set(document.id, `${document.id} (${document.status})`)
  }
  return names.size < 2
    ? null
    : ['several_documents', `documents ${[...names.values()].join(' and ')} are all in force`]
}

/**
 * Invoices with a total of zero or less need no document. `obstacle` says why a document that names the invoice belongs to another invoice
 * or to none.
 */
function findMissing(
  invoice: Invoice,
  claim: Claim,
  itsStatus: string | null,
  rules: LinkRules,
  obstacle: string | null,
): Finding | null {
  const { status, total_cents } = invoice
  if ((status !== 'paid' && status !== 'open') || total_cents <= 0) return null
  const why = whyMissing(invoice, claim, itsStatus, rules, obstacle)
  return why === null ? null : [`${status}_without_document`, `${status}${why}`]
}

function whyMissing(
  invoice: Invoice,
  claim: Claim,
  itsStatus: string | null,
  rules: LinkRules,
  obstacle: string | null,
): string | null {
  const { ix_sync_state, ix_id } = invoice
  if (ix_sync_state === 'synced') {
    const name = ix_id === null ? 'its document' : `document ${ix_id}`
    if (itsStatus === 'draft') return `, but ${name} is a draft`
    if (itsStatus === copyStatus) return `, but ${name} is a second copy, and its original is not known`
    return itsStatus === 'canceled' || itsStatus === 'deleted' ? `, but ${name} is ${itsStatus}` : null
  }
  if (ix_sync_state !== 'not_synced' || ignoredBecause(invoice, claim, rules) !== null) return null
  if (claim.ix_id === null && obstacle !== null) return `, and ${obstacle}`
  return claim.ix_id === null
    ? ', and there is no document'
    : `; document ${claim.ix_id} is recorded, but was never seen`
}

function findOnVoid({ status, ix_id }: Invoice, itsStatus: string | null): Finding | null {
  // A second copy does not say whether its original is canceled.
  const isOver = itsStatus === 'canceled' || itsStatus === 'deleted' || itsStatus === copyStatus
  if (status !== 'void' || ix_id === null || isOver) return null
  return ['document_on_void', `void, but document ${ix_id} is ${itsStatus ?? 'there'}`]
}

function findStuck(invoice: Invoice, claim: Claim, rules: LinkRules, now: number): Finding | null {
  if (claim.state !== 'creating') return null
  const since = claim.attempted_at ?? invoice.issued_at
  if (now - Date.parse(since) <= rules.creatingTimeoutMs) return null
  const known = claim.attempted_at === null ? `an unknown time; issued ${since}` : since
  return ['stuck_creating', `creating since ${known}`]
}

function findFailure({ ix_sync_state }: Invoice, claim: Claim): Finding | null {
  if (ix_sync_state !== 'failed' || claim.state === 'creating') return null
  const why =
    claim.state === 'failed' || claim.ix_id === null
      ? (claim.error ?? 'no reason is recorded')
      : `document ${claim.ix_id} is recorded, but the invoicing system no longer has it`
  return ['failed', why]
}

function compareTaxIds(
  { customer_tax_id: own }: Invoice,
  document: Document,
  other: string | null | undefined,
  platform: string,
): Finding | null {
  if (other === undefined || isSameTaxId(own ?? '', other ?? '')) return null
  const kind = isNobody(own) || isNobody(other) ? 'tax_id_one_side' : 'tax_id_differs'
  return [
    kind,
    `${own || 'none'} at ${platform}, ${other || 'none'} of the client of ${nameDocument(document)}`,
  ]
}
