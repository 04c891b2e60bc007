/** Fetches a stored invoice again from both systems and compares the answers with the store. */
import { type Document, type DocumentType, noClaim } from '../domain/document.ts'
import { type Invoice, type InvoiceKey, invoiceFields, type Line, lineFields } from '../domain/invoice.ts'
import { deriveLink } from '../domain/link/derive-link.ts'
import type { KnownDocument } from '../domain/link/known.ts'
import type { LinkRules } from '../domain/link/link.ts'
import { claimantsOf, documentsOf, paymentIds } from '../domain/link/related.ts'
import { changedFacts, type PaymentFacts } from '../domain/payment.ts'
import { completeRecord } from '../sources/platform-invoice.ts'
import type { BillingSource, DocumentSource } from '../sources/source.ts'
import type { OperatorStore } from '../store/store.ts'

/** One difference, for example `total_cents: 1230 → 1240`. */
interface FieldDifference {
  field: string
  stored: string
  now: string
}

/** Fields whose values are never shown, because users publish the findings in bug reports. */
const personal = /^(display_name|customer_name|customer_email|company_name|customer_tax_id|description)$/

function compareFields<T>(fields: readonly (keyof T & string)[], stored: T, now: T, path = '') {
  const show = (name: string, value: unknown) => {
    if (value === null || value === undefined) return 'null'
    return personal.test(name) ? `${String(value).length} characters (not shown)` : String(value)
  }
  return fields
    .filter(name => stored[name] !== now[name])
    .map(name => ({ field: path + name, stored: show(name, stored[name]), now: show(name, now[name]) }))
}

const ixFields = ['ix_sync_state', 'ix_id', 'ix_status', 'ix_created_at'] as const
type IxFields = Pick<Invoice, (typeof ixFields)[number]>
const ownFields = invoiceFields.filter(name => !(ixFields as readonly string[]).includes(name))
const documentFields = ['status', 'total', 'reference'] as const

export function compareLink(stored: IxFields, now: IxFields): FieldDifference[] {
  return compareFields<IxFields>(ixFields, stored, now)
}

/** Returns no difference when the lines of either side are unknown. */
function compareLines(stored: readonly Line[] | null, now: readonly Line[] | null): FieldDifference[] {
  if (stored === null || now === null) return []
  if (stored.length !== now.length)
    return [{ field: 'lines', stored: String(stored.length), now: String(now.length) }]
  return stored.flatMap((line, i) => compareFields<Line>(lineFields, line, now[i] as Line, `lines[${i}].`))
}

/** Shows an amount as it is, and a list as its length. */
function comparePayment(stored: PaymentFacts, now: PaymentFacts): FieldDifference[] {
  const show = (value: unknown) => (Array.isArray(value) ? `${value.length} in all` : String(value))
  return changedFacts(stored, now).map(field => ({
    field,
    stored: show(stored[field]),
    now: show(now[field]),
  }))
}

/** `null` means that the document is unknown or does not exist. */
function compareDocument(id: number, stored: Document | null, now: Document | null): FieldDifference[] {
  if (stored === null && now === null) return []
  const field = `document ${id}`
  if (stored === null || now === null)
    return [{ field, stored: stored?.status ?? 'not known', now: now?.status ?? 'not found' }]
  return compareFields<Document>(documentFields, stored, now, `${field} `)
}

export interface Compared {
  store: Pick<OperatorStore, 'readLinked' | 'readInvoices' | 'findDocuments' | 'findClaimants'>
  payments: Pick<BillingSource, 'fetchInvoice'>
  /** Null when no invoicing system is connected or its key does not work. */
  documents: Pick<DocumentSource, 'fetchDocument'> | null
  rules: LinkRules
}

/** Returns null for an invoice that did not come from the payment platform. */
export async function compareWithSources(
  { store, payments, documents, rules }: Compared,
  key: InvoiceKey,
): Promise<FieldDifference[] | null> {
  const { found } = await payments.fetchInvoice(key.id, key.customer_id)
  // The store is read after the fetch, so that a change that the connector applies meanwhile is not reported.
  const stored = await readStored(store, key)
  if (stored === null) return []
  const { linked, invoice, lines, payment } = stored
  if (linked.claim === null) return null
  if (found === null) return [{ field: 'status', stored: invoice.status, now: 'not found at Stripe' }]
  if ('refusal' in found)
    return [{ field: 'status', stored: invoice.status, now: `refused: ${found.refusal}` }]
  const record = completeRecord(found, { invoice, payment })
  const claim = record.claim ?? noClaim
  // Finds the documents that are tied to the invoice, that its claim names, or that refer to it.
  const own = { invoice: record.invoice, claim, payments: paymentIds(record.payment) }
  const related = documentsOf([own], rules)
  const tied = linked.document === null ? [] : [linked.document.id]
  const known = await store.findDocuments({ ...related, ids: tied })
  const wanted = new Map<number, DocumentType | null>()
  if (claim.ix_id !== null) wanted.set(claim.ix_id, claim.ix_type)
  for (const { id, document } of known) wanted.set(id, document?.type ?? wanted.get(id) ?? null)
  const answers = new Map<number, Document | null>()
  if (documents !== null)
    for (const [id, type] of wanted) {
      answers.set(id, await documents.fetchDocument(id, type))
    }
  const fresh = documents === null ? known : applyAnswers(known, answers)
  const claimants = await store.findClaimants(claimantsOf(fresh, rules))
  const link = deriveLink(own, fresh, rules, Date.now(), claimants)
  return [
    ...compareFields<Invoice>(ownFields, invoice, record.invoice),
    ...compareLines(lines, record.lines),
    ...comparePayment(payment, record.payment ?? payment),
    ...known.flatMap(({ id, document, misses }) => {
      const now = answers.get(id)
      // The connector already knows that a read missed this document, so its absence is not reported.
      if (now === undefined || (now === null && misses > 0)) return []
      return compareDocument(id, misses > 0 ? null : document, now)
    }),
    ...compareLink(invoice, link.fields),
  ]
}

async function readStored(store: Compared['store'], { customer_id, id }: InvoiceKey) {
  // `readLinked` returns the rows after a key. In the order of keys, the invoice's id without its last character comes before the invoice.
  const before = { customer_id, id: id.slice(0, -1) }
  const linked = (await store.readLinked(before, 100, customer_id)).find(other => other.id === id)
  if (linked === undefined) return null
  const records = await store.readInvoices(before, 100)
  const lines = records.find(other => other.id === id)?.lines ?? null
  return {
    linked,
    payment: linked.payment,
    invoice: JSON.parse(linked.summary) as Invoice,
    lines: lines === null ? null : (JSON.parse(lines) as Line[]),
  }
}

/** A missing document changes nothing at first. The document counts as deleted only after two reads missed it. */
function applyAnswers(known: readonly KnownDocument[], answers: ReadonlyMap<number, Document | null>) {
  const byId = new Map(known.map(each => [each.id, each]))
  return [...answers].map(([id, document]) =>
    document === null
      ? (byId.get(id) ?? { id, document, misses: 1, observed_stamp: 0, client_tax_id: null })
      : { id, document, misses: 0, observed_stamp: 0, client_tax_id: byId.get(id)?.client_tax_id ?? null },
  )
}
