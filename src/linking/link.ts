/** Links an invoice to its document, and derives `ix_sync_state`: pure, one rule after the other. */
import { type Claim, copyStatus, type Document, missesToBelieve, originalStatusOf } from '../document.ts'
import { type Invoice, isInvoiceId, type SyncState } from '../invoice.ts'
import type { Claimed, KnownDocument } from '../store/document-store.ts'

/** The convention with the creator of documents, as far as it differs between companies. */
export const usualRules = {
  /** The pattern of a document's reference, with `{id}` for the invoice's id. */
  reference: '{id}',
  ignoreZero: false,
  /** Invoices issued before this day, YYYY-MM-DD, need no document. */
  ignoreBefore: null as string | null,
  /** How long a document may stay `creating` before it counts as failed. */
  creatingTimeoutMs: 60 * 60 * 1000,
  /** Whether an invoicing system is connected. Without one, stored links stay. */
  isConnected: true,
}
export type LinkRules = typeof usualRules

export type LinkFields = Pick<Invoice, 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'>

export interface Link {
  fields: LinkFields
  /** The rule that decided, in words for people. */
  why: string
  /** Every document that fits, where more than one does. */
  candidates: readonly number[]
  /** Why the recorded document belongs to another invoice; null when it does not. */
  refusal: Refusal | null
}

export interface Refusal {
  kind: 'claim_contradicted' | 'claimed_twice'
  why: string
}

export function referenceOf(invoiceId: string, { reference }: LinkRules): string {
  return reference.replace('{id}', invoiceId)
}

/** The invoice that a reference names, if it names any: exactly as the convention writes it. */
export function invoiceIdOf(reference: string | null, { reference: pattern }: LinkRules): string | null {
  const [before = '', after = ''] = pattern.split('{id}')
  if (reference === null || !reference.startsWith(before) || !reference.endsWith(after)) return null
  const id = reference.slice(before.length, reference.length - after.length)
  return isInvoiceId(id) ? id : null
}

/** A document whose reference names no invoice, by the convention or as a plain id, may name it by its `uid`. */
export function withReference(document: Document, rules: LinkRules): Document {
  const { uid } = document
  return uid !== undefined && isInvoiceId(uid) && namedBy(document, rules) === null
    ? { ...document, reference: referenceOf(uid, rules) }
    : document
}

/** Tax ID of an anonymous client: Portugal's "Consumidor Final". */
export const anonymousTaxId = '999999990'

/** The invoice that a document's reference names, by the convention or as a plain id. */
export function namedBy({ reference }: Document, rules: LinkRules): string | null {
  return invoiceIdOf(reference, rules) ?? (reference !== null && isInvoiceId(reference) ? reference : null)
}

/**
 * Why a document does not belong to the invoice; null when it may. A document has one owner: the invoice that its reference
 * names; without one, the first of the invoices that claim it, by issue and then by id, except those whose customer has another
 * tax ID than the document's client. `claimants` are all that claim it.
 */
export function findRefusal(
  { document, client_tax_id }: KnownDocument,
  invoice: Invoice,
  claimants: readonly Claimed[],
  rules: LinkRules,
): Refusal | null {
  if (document === null) return null
  const { id } = document
  const named = namedBy(document, rules)
  if (named !== null)
    return named === invoice.id
      ? null
      : { kind: 'claim_contradicted', why: `document ${id} is recorded, but its reference names ${named}` }
  const isOther = ({ customer_tax_id }: Invoice) =>
    !isNobody(customer_tax_id) &&
    !isNobody(client_tax_id) &&
    !isSameTaxId(customer_tax_id ?? '', client_tax_id ?? '')
  if (isOther(invoice))
    return {
      kind: 'claim_contradicted',
      why: `document ${id} is recorded, but its client has another tax ID`,
    }
  const [first] = claimants
    .filter(({ claim, invoice }) => claim.ix_id === id && !isOther(invoice))
    .map(({ invoice }) => invoice)
    .sort(byIssue)
  return first === undefined || byIssue(first, invoice) === 0
    ? null
    : { kind: 'claimed_twice', why: `document ${id} is recorded for ${first.id} too, which was issued first` }
}

/** Why the recorded document does not belong to the invoice; null when it may, is unknown, or is gone. */
export function findClaimRefusal(
  invoice: Invoice,
  claim: Claim,
  known: readonly KnownDocument[],
  claimants: readonly Claimed[],
  rules: LinkRules,
): Refusal | null {
  const claimed = known.find(({ id }) => id === claim.ix_id)
  return claimed === undefined || isGone(claimed) ? null : findRefusal(claimed, invoice, claimants, rules)
}

/** A total order: no two invoices of a store have the same customer and id. */
function byIssue(a: Invoice, b: Invoice): number {
  const keyOf = ({ issued_at, id, customer_id }: Invoice) => `${issued_at} ${id} ${customer_id}`
  const [left, right] = [keyOf(a), keyOf(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

/** Whether it names nobody: none at all, or that of an anonymous client. */
export function isNobody(taxId: string | null): boolean {
  return isSameTaxId(taxId ?? '', '')
}

/** Ignores separators and case; a country prefix may be missing on one side, but not differ. That of an anonymous client is none. */
export function isSameTaxId(a: string, b: string): boolean {
  const [left, right] = [bare(a), bare(b)]
  const without = (text: string) => text.replace(/^[A-Z]{2}(?=.)/, '')
  return left === right || without(left) === right || left === without(right)
}

/** Greece is EL in VAT numbers, and GR among countries. */
function bare(text: string): string {
  const taxId = text
    .normalize('NFKC')
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
    .replace(/^GR(?=\d)/, 'EL')
  return taxId.replace(/^PT/, '') === anonymousTaxId ? '' : taxId
}

/**
 * `invoice` holds the last link; `known` the documents that it claims, is linked to, or is named by; `claimants` all invoices that
 * claim one of these. The first rule that fits decides. A document that was found before is given up only after the system
 * answered twice that it is gone.
 */
export function deriveLink(
  invoice: Invoice,
  claim: Claim,
  known: readonly KnownDocument[],
  rules: LinkRules,
  now: number,
  claimants: readonly Claimed[] = [],
): Link {
  const refusal = findClaimRefusal(invoice, claim, known, claimants, rules)
  const candidates = matching(referenceOf(invoice.id, rules), refusal === null ? claim.ix_id : null, known)
  const [found] = candidates
  if (found !== undefined) {
    const how =
      found.id === claim.ix_id
        ? `claimed as ${found.id}`
        : found.uid === invoice.id
          ? `whose proprietary_uid is ${found.uid}`
          : `referring to ${found.reference}`
    return {
      fields: {
        ix_sync_state: 'synced',
        ix_id: found.id,
        ix_status: found.status,
        ix_created_at: claim.created_at ?? (found.date === null ? null : `${found.date}T00:00:00.000Z`),
      },
      why: `there is a document ${how}, and it is ${found.status}`,
      candidates: candidates.length > 1 ? candidates.map(({ id }) => id) : [],
      refusal,
    }
  }
  /** A null state: the last link stays. */
  const deriveWithout = (): [SyncState | null, string] => {
    const kept = keepsDocument(invoice, known)
    if (kept !== null) return [null, kept]
    const ignored = ignoredBecause(invoice, claim, rules)
    if (ignored !== null) return ['ignored', ignored]
    if (claim.state === 'failed')
      return ['failed', `it is recorded as failed: ${claim.error ?? 'no reason given'}`]
    if (claim.state === 'creating')
      return isOverdue(claim, rules.creatingTimeoutMs, now)
        ? ['failed', `it has been creating since ${claim.attempted_at}, which is too long`]
        : ['creating', `it is recorded as creating since ${claim.attempted_at ?? 'an unknown time'}`]
    if (refusal !== null) return ['failed', refusal.why]
    const claimed = known.find(({ id }) => id === claim.ix_id)
    if (claimed !== undefined && isGone(claimed))
      return ['failed', `document ${claimed.id} is recorded, but the invoicing system no longer has it`]
    if (claim.ix_id !== null)
      return ['not_synced', `document ${claim.ix_id} is recorded, but was not seen yet`]
    if (!rules.isConnected) return [null, 'no invoicing system is connected; the last known state stays']
    return ['not_synced', 'no document claims it, and none is recorded']
  }
  const [ix_sync_state, why] = deriveWithout()
  const fields =
    ix_sync_state === null
      ? fieldsOf(invoice)
      : { ix_sync_state, ix_id: null, ix_status: null, ix_created_at: null }
  return { fields, why, candidates: [], refusal }
}

/** The documents that certify the invoice, the best first: a copy is one only where its original is not among them. */
function matching(reference: string, claimedId: number | null, known: readonly KnownDocument[]): Document[] {
  const ranks: Record<string, number> = { [copyStatus]: 2, canceled: 3 }
  const rank = ({ id, status }: Document) => (id === claimedId ? 0 : (ranks[status] ?? 1))
  const fitting = known
    .filter(known => !isGone(known))
    .flatMap(({ document }) => document ?? [])
    .filter(document => document.id === claimedId || document.reference === reference)
  return fitting
    .filter(document => document.id === claimedId || !hasOriginal(document, fitting))
    .sort((a, b) => rank(a) - rank(b) || a.id - b.id)
}

function hasOriginal(document: Document, others: readonly Document[]): boolean {
  return document.status === copyStatus && originalStatusOf(document, others) !== copyStatus
}

export function isGone({ document, misses }: KnownDocument): boolean {
  return misses >= missesToBelieve || document?.status === 'deleted'
}

/** Why the last document is kept, though none is found now; null when it is not. */
function keepsDocument({ ix_id }: Invoice, known: readonly KnownDocument[]): string | null {
  if (ix_id === null) return null
  const before = known.find(({ id }) => id === ix_id)
  if (before === undefined) return `document ${ix_id} was not read yet; the last known state stays`
  if (before.document === null && !isGone(before))
    return `document ${ix_id} was missed once; the last known state stays until it is missed again`
  return null
}

/** Why an invoice needs no document; null when it does. */
export function ignoredBecause(invoice: Invoice, claim: Claim, rules: LinkRules): string | null {
  const { ignoreZero, ignoreBefore } = rules
  if (claim.state === 'ignored') return 'it is recorded as ignored'
  if (ignoreZero && invoice.total_cents === 0) return 'its total is zero'
  const isBefore = ignoreBefore !== null && invoice.issued_at < ignoreBefore
  return isBefore ? `it was issued before ${ignoreBefore}` : null
}

export function isOverdue({ attempted_at }: Claim, atMost: number, now: number): boolean {
  return attempted_at !== null && now - Date.parse(attempted_at) > atMost
}

export function fieldsOf({ ix_sync_state, ix_id, ix_status, ix_created_at }: Invoice): LinkFields {
  return { ix_sync_state, ix_id, ix_status, ix_created_at }
}
