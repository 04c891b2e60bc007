/** Decides which invoice owns a document. Pure functions. */
import { type Claim, missesToBelieve } from '../document.ts'
import { type Invoice, keyOf } from '../invoice.ts'
import type { Claimed, KnownDocument } from './known.ts'
import {
  defaultTemplates,
  describeName,
  type Name,
  type Naming,
  nameKey,
  namesIn,
  namesOf,
} from './reference.ts'

/** Settings of the convention by which a document names its invoice. Companies may choose other values. */
export const defaultRules = {
  /** Templates that a document's reference may follow. */
  references: defaultTemplates,
  ignoreZero: false,
  /** Invoices issued before this day, YYYY-MM-DD, need no document. Null means that no day is set. */
  ignoreBefore: null as string | null,
  /** Time in milliseconds that a document may stay `creating` before it counts as failed. */
  creatingTimeoutMs: 60 * 60 * 1000,
  /** True when an invoicing system is connected. Without one, stored links stay unchanged. */
  isConnected: true,
}
export type LinkRules = typeof defaultRules

export type LinkFields = Pick<Invoice, 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'>

export interface LinkRefusal {
  kind: 'claim_contradicted' | 'claimed_twice'
  why: string
}

/** Tax ID of an anonymous client in Portugal ("Consumidor Final"). */
export const anonymousTaxId = '999999990'

/** The names that decide who owns a document, and the IDs of the invoices that have these names. */
export interface Resolved {
  names: readonly Naming[]
  ids: ReadonlySet<string>
}

/**
 * Finds the invoices that a document names. An ID names one invoice, stored or not. A payment names the `claimants` that have this payment.
 * A number counts only when no payment was found. It names the `claimants` that have this number and whose customer is the document's
 * client.
 */
export function resolveNames(
  { document, client_tax_id }: KnownDocument,
  claimants: readonly Claimed[],
  rules: LinkRules,
): Resolved {
  const all = document === null ? [] : namesIn(document, rules.references)
  const ids = all.filter(({ kind }) => kind === 'id')
  if (ids.length > 0) return { names: ids, ids: new Set(ids.map(({ value }) => value)) }
  for (const kind of ['payment', 'number'] as const) {
    const found = all
      .filter(name => name.kind === kind)
      .map(name => ({ name, having: claimants.filter(claimed => hasName(claimed, name, client_tax_id)) }))
      .filter(({ having }) => having.length > 0)
    if (found.length === 0) continue
    const ids = found.flatMap(({ having }) => having.map(({ invoice }) => invoice.id))
    return { names: found.map(({ name }) => name), ids: new Set(ids) }
  }
  return { names: all, ids: new Set() }
}

/** Two companies may use the same invoice number. A number therefore counts only when the customer is the document's client. */
function hasName({ invoice, payments }: Claimed, { kind, value }: Name, clientTaxId: string | null): boolean {
  return kind === 'payment'
    ? payments.includes(value)
    : invoice.number === value && isSameClient(invoice, clientTaxId)
}

function isSameClient({ customer_tax_id }: Invoice, clientTaxId: string | null): boolean {
  if (isNobody(customer_tax_id) || isNobody(clientTaxId)) return false
  return isSameTaxId(customer_tax_id ?? '', clientTaxId ?? '')
}

/** Tells whether the document names this invoice and no other, in a form that a template allows. */
export function namesOnly({ names, ids }: Resolved, { id }: Invoice): boolean {
  return ids.size === 1 && ids.has(id) && names.some(({ template }) => template !== null)
}

/**
 * Returns why a document does not belong to the invoice. Null when it may belong to it. `claimants` are all invoices that claim the
 * document, or have a payment or a number that it names.
 * A document has one owner. If it names one invoice, this invoice owns it. If it names several, the first of them that claims it is the
 * owner. If it names none, the owner is the first invoice that claims it and whose customer does not have another tax ID than the
 * document's client. Invoices are ordered by time of issue and then by ID.
 */
export function findRefusal(
  known: KnownDocument,
  invoice: Invoice,
  claimants: readonly Claimed[],
  rules: LinkRules,
): LinkRefusal | null {
  const { document, id, client_tax_id } = known
  if (document === null) return null
  const { names, ids } = resolveNames(known, claimants, rules)
  if (ids.size > 0 && !ids.has(invoice.id))
    return {
      kind: 'claim_contradicted',
      why: `document ${id} is recorded, but ${describeNamed(names, ids)}`,
    }
  if (ids.size === 1) return null
  if (ids.size === 0 && isOtherClient(invoice, client_tax_id))
    return {
      kind: 'claim_contradicted',
      why: `document ${id} is recorded, but its client has another tax ID`,
    }
  const mayOwn = (other: Invoice) =>
    ids.size === 0 ? !isOtherClient(other, client_tax_id) : ids.has(other.id)
  const [first] = claimants
    .filter(({ claim, invoice }) => claim.ix_id === id && mayOwn(invoice))
    .map(({ invoice }) => invoice)
    .sort(byIssue)
  return first === undefined || byIssue(first, invoice) === 0
    ? null
    : { kind: 'claimed_twice', why: `document ${id} is recorded for ${first.id} too, which was issued first` }
}

/**
 * Tells whether an invoice loses the document at once. It does when another invoice owns the document, or when the document names several
 * invoices. Any other loss, such as a different tax ID of the client, may be held back when many losses happen together.
 */
export function isLostAtOnce(
  known: KnownDocument,
  invoice: Invoice,
  claimants: readonly Claimed[],
  rules: LinkRules,
): boolean {
  const { ids } = resolveNames(known, claimants, rules)
  if (ids.size > 0) return ids.size > 1 || !ids.has(invoice.id)
  if (findRefusal(known, invoice, claimants, rules) === null) return false
  return claimants.some(
    other =>
      other.claim.ix_id === known.id &&
      keyOf(other.invoice) !== keyOf(invoice) &&
      !isOtherClient(other.invoice, known.client_tax_id),
  )
}

/** Returns a text such as "its reference names payment pi_1 of in_a and in_b". */
function describeNamed([name]: readonly Naming[], ids: ReadonlySet<string>): string {
  if (name === undefined) return 'it names nothing'
  const owners = name.kind === 'id' ? '' : ` of ${listWords([...ids].sort())}`
  return `its ${name.field} names ${describeName(name)}${owners}`
}

/** Returns a text such as "in_a, in_b and in_c". */
export function listWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

function isOtherClient({ customer_tax_id }: Invoice, clientTaxId: string | null): boolean {
  if (isNobody(customer_tax_id) || isNobody(clientTaxId)) return false
  return !isSameTaxId(customer_tax_id ?? '', clientTaxId ?? '')
}

/** Returns why the recorded document does not belong to the invoice. Null when it may belong to it, is unknown, or is gone. */
export function findClaimRefusal(
  invoice: Invoice,
  claim: Claim,
  known: readonly KnownDocument[],
  claimants: readonly Claimed[],
  rules: LinkRules,
): LinkRefusal | null {
  const claimed = known.find(({ id }) => id === claim.ix_id)
  return claimed === undefined || isGone(claimed) ? null : findRefusal(claimed, invoice, claimants, rules)
}

/** Orders invoices by time of issue. No two invoices compare as equal, because customer and ID are unique in a store. */
function byIssue(a: Invoice, b: Invoice): number {
  const keyOf = ({ issued_at, id, customer_id }: Invoice) => `${issued_at} ${id} ${customer_id}`
  const [left, right] = [keyOf(a), keyOf(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

/** True for an absent tax ID and for the one of anonymous clients. */
export function isNobody(taxId: string | null): boolean {
  return isSameTaxId(taxId ?? '', '')
}

/**
 * Compares tax IDs without separators and case. A country prefix may be missing on one side, but two prefixes must be equal. The tax ID of
 * an anonymous client counts as empty.
 */
export function isSameTaxId(a: string, b: string): boolean {
  const [left, right] = [bare(a), bare(b)]
  const without = (text: string) => text.replace(/^[A-Z]{2}(?=.)/, '')
  return left === right || without(left) === right || left === without(right)
}

/** VAT numbers of Greece begin with EL, although its country code is GR. */
function bare(text: string): string {
  const taxId = text
    .normalize('NFKC')
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
    .replace(/^GR(?=\d)/, 'EL')
  return taxId.replace(/^PT/, '') === anonymousTaxId ? '' : taxId
}

/** Tells whether the names in the document tie it to the invoice, whatever claims are recorded. */
export function isTiedByName(
  known: KnownDocument,
  invoice: Invoice,
  claimants: readonly Claimed[],
  rules: LinkRules,
): boolean {
  return namesOnly(resolveNames(known, claimants, rules), invoice)
}

/**
 * Returns why a document that has a name of the invoice is not tied to it. Null when the document is tied, is gone, or has no such name.
 */
export function findObstacle(
  known: KnownDocument,
  invoice: Invoice,
  claimants: readonly Claimed[],
  rules: LinkRules,
): string | null {
  const { document, client_tax_id } = known
  const own = claimants.find(other => keyOf(other.invoice) === keyOf(invoice))
  if (document === null || isGone(known) || own === undefined) return null
  const mine = new Set(namesOf(own).map(nameKey))
  const [name] = namesIn(document, rules.references).filter(each => mine.has(nameKey(each)))
  if (name === undefined) return null
  const resolved = resolveNames(known, claimants, rules)
  if (namesOnly(resolved, invoice)) return null
  const subject = `document ${document.id} names ${describeName(name)}`
  if (name.template === null) return `${subject}, but DOCUMENT_REFERENCE allows no plain ID`
  const { names, ids } = resolved
  const others = [...ids].filter(id => id !== invoice.id).sort()
  if (ids.has(invoice.id))
    return `${subject}, which ${listWords(others)} ${others.length > 1 ? 'have' : 'has'} too: it is tied to none of them`
  if (ids.size > 0) return `${subject}, but ${describeNamed(names, ids)}`
  return `${subject}, but ${compareClients(invoice, client_tax_id)}`
}

/** Returns why the customer does not count as the document's client. */
function compareClients({ customer_tax_id }: Invoice, clientTaxId: string | null): string {
  if (!customer_tax_id) return 'the customer has no tax ID to compare'
  if (clientTaxId === null) return "its client's tax ID is not known"
  if (isNobody(clientTaxId)) return 'its client is anonymous'
  return "its client's tax ID is not the customer's"
}

export function isGone({ document, misses }: KnownDocument): boolean {
  return misses >= missesToBelieve || document?.status === 'deleted'
}

/** Returns why an invoice needs no document. Null when it needs one. */
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
