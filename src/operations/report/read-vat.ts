/** Reads the documents and invoices of a month into its VAT report, batch by batch. */
import {
  copyStatus,
  creditTypes,
  type Document,
  isInForce,
  notInForce,
  printedNumberOf,
  type RelatedDocument,
} from '../../domain/document.ts'
import { creditedCents, describeInvoiceDocument } from '../../domain/document-json.ts'
import type { Invoice, InvoiceDocument } from '../../domain/invoice.ts'
import { writeAmount } from '../../domain/money.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import { knownSources } from '../../sources/known-sources.ts'
import type { DatedDocument, RelatedDocuments } from '../../store/document-store.ts'
import type { OperatorStore, WalkedInvoice } from '../../store/store.ts'
import { readBatches } from '../../sync/concurrency.ts'
import { amountsOfDocument, amountsOfInvoice, countryOf, toEuros, type VatAmounts } from './vat-amounts.ts'
import type { VatEntry, VatNames, VatReport } from './vat-report.ts'

export interface VatMonth {
  store: OperatorStore
  /** The month as YYYY-MM, and its first and last day. */
  month: string
  days: { from: string; to: string }
  /** Moments of the month's invoices. `from` is inclusive, `before` is exclusive. */
  from: number
  before: number
  dayOf(moment: number): string
  /** `done` counts the documents or invoices of a step. */
  onProgress(step: string, done: number): void
}

/** Data of a document that is kept until the document's invoice is read. */
interface Certified extends Omit<VatNames, 'customer_id' | 'invoice_id' | 'number'> {
  amounts: VatAmounts
  country: string | null
  exemption_code: string | null
  /** Invoices that are tied to the document. Most of them are among the month's invoices. */
  invoices: readonly Pick<
    Invoice,
    'id' | 'customer_id' | 'number' | 'status' | 'issued_at' | 'customer_tax_id'
  >[]
}

/** Returns the numbers of documents and invoices, and of invoices left out because they are ignored or belong to MOSS. */
export async function fillVatReport(report: VatReport, vat: VatMonth) {
  const certified = await readCertified(report, vat)
  const documents = certified.size
  const notes = await readNotes(report, vat)
  const counts = await readInvoices(report, vat, certified)
  for (const document of certified.values()) report.add(aloneOf(document, vat))
  const due = await vat.store.readDueRelations(1, maxDue)
  if (due.length > 0)
    report.addUnread(
      `related documents of ${due.length === maxDue ? `${maxDue} or more` : due.length} documents are still to be read: credit notes may be missing`,
    )
  return { documents: documents + notes, ...counts }
}

const maxDue = 1000

/** Returns the month's documents in force, by id. A second copy is not counted beside its original. */
async function readCertified(report: VatReport, { store, days, onProgress }: VatMonth) {
  const certified = new Map<number, Certified>()
  const copies: Document[] = []
  const numbers = new Set<string | null>()
  const read = (after: DatedDocument | null, limit: number) =>
    store.readDated(days, after?.document ?? null, limit)
  let done = 0
  for await (const batch of readBatches(read)) {
    for (const { document, isGone, client_tax_id, invoices } of batch) {
      if (isGone || notInForce.includes(document.status) || isMoss(document)) continue
      if (document.status === copyStatus) copies.push(document)
      else {
        numbers.add(nameOf(document))
        certified.set(document.id, certifiedOf(document, client_tax_id, invoices))
      }
    }
    done += batch.length
    onProgress('read: documents', done)
  }
  for (const copy of copies)
    if (!numbers.has(nameOf(copy)))
      report.addUnread(`document ${copy.id} is a second copy, and its original is not known`)
  return certified
}

/**
 * Types of documents with the VAT of other countries, which is declared separately. The monthly declaration and the SAF-T file leave these
 * documents out.
 */
const isMoss = ({ type }: { type: string }) => type.startsWith('VatMoss')

const nameOf = (document: Document) => printedNumberOf(document) ?? document.number

function certifiedOf(
  document: Document,
  client_tax_id: string | null,
  invoices: readonly Invoice[],
): Certified {
  return {
    document_id: document.id,
    document_number: nameOf(document),
    document_date: document.date,
    amounts: amountsOfDocument(document),
    country: countryOf(client_tax_id),
    exemption_code: document.exemption_code ?? null,
    invoices: invoices.map(({ id, customer_id, number, status, issued_at, customer_tax_id }) => {
      return { id, customer_id, number, status, issued_at, customer_tax_id }
    }),
  }
}

/** Reads the month's credit and debit notes in force. Each note counts once. */
async function readNotes(report: VatReport, { store, month, onProgress }: VatMonth): Promise<number> {
  const seen = new Set<number>()
  const read = (after: RelatedDocuments | null, limit: number) =>
    store.readRelated(month, after?.document.id ?? 0, limit)
  for await (const batch of readBatches(read))
    for (const about of batch.filter(({ document }) => !isMoss(document)))
      for (const note of about.relations.documents) {
        const isOfMonth = note.date?.startsWith(month) === true && isInForce(note)
        if (!isOfMonth || !(creditTypes.includes(note.type) || note.type === 'DebitNote')) continue
        if (seen.has(note.id)) continue
        report.add(entryOfNote(note, about))
        onProgress('read: credit notes', seen.add(note.id).size)
      }
  return seen.size
}

/**
 * Stripe reports no day and no tax for its credit notes. When the credited totals of Stripe and of the document's notes are equal, each
 * note counts as equal on both sides.
 */
function entryOfNote(note: RelatedDocument, about: RelatedDocuments): VatEntry {
  const { document, client_tax_id, relations, invoices } = about
  const isCredit = creditTypes.includes(note.type)
  const amounts = amountsOfDocument(note)
  const signed = isCredit ? negated(amounts) : amounts
  const [tied] = invoices
  const credited = tied && {
    at: tied.payment.pre_payment_credit_cents + tied.payment.post_payment_credit_cents,
    by: creditedCents(describeInvoiceDocument(tied.invoice, document, relations), tied.invoice.currency),
  }
  const isEqual = isCredit && credited !== undefined && credited.at === credited.by
  return {
    customer_id: tied?.invoice.customer_id ?? null,
    invoice_id: tied?.invoice.id ?? null,
    number: tied?.invoice.number ?? null,
    document_id: note.id,
    document_number: printedNumberOf(note),
    document_date: note.date,
    country: countryOf(client_tax_id) ?? countryOf(tied?.invoice.customer_tax_id ?? null),
    exemption_code: note.exemption_code ?? document.exemption_code ?? null,
    document: signed,
    invoice: isEqual ? { parts: signed.parts, unread: null, currency: 'eur' } : null,
    reason: isEqual ? '' : reasonOfNote(note, tied?.invoice, credited),
  }
}

function reasonOfNote(
  { type }: RelatedDocument,
  invoice: Invoice | undefined,
  credited: { at: number; by: number } | undefined,
): string {
  if (invoice === undefined || credited === undefined) return 'no invoice is tied to what it is about'
  if (!creditTypes.includes(type)) return `a debit note, which ${knownSources.billing.name} does not have`
  const write = (amount: number) => `${writeAmount(amount, invoice.currency)} ${invoice.currency}`
  return `${write(credited.at)} credited at ${knownSources.billing.name}, ${write(credited.by)} by credit notes in force`
}

/** Makes the amounts negative. InvoiceXpress may write amounts of credit notes with either sign. */
function negated({ parts, unread }: VatAmounts): VatAmounts {
  const total = (parts ?? []).reduce((all, { base_cents, tax_cents }) => all + base_cents + tax_cents, 0)
  const sign = total > 0 ? -1 : 1
  const turned = parts?.map(({ rate_percent, base_cents, tax_cents }) => {
    return { rate_percent, base_cents: sign * base_cents || 0, tax_cents: sign * tax_cents || 0 }
  })
  return { parts: turned ?? null, unread }
}

/** Reads the month's invoices with their documents. Documents that belong to one of these invoices are removed from `certified`. */
async function readInvoices(
  report: VatReport,
  { store, from, before, onProgress }: VatMonth,
  certified: Map<number, Certified>,
) {
  const counts = { invoices: 0, ignored: 0, moss: 0 }
  let done = 0
  const query = { customers: null, withLines: false, issued_from: from, issued_before: before }
  for await (const batch of store.walkInvoices(query))
    for (const row of batch) {
      onProgress('read: invoices', ++done)
      const invoice: Invoice = JSON.parse(row.summary)
      if (invoice.status === 'draft' || invoice.status === 'void') continue
      if (invoice.ix_sync_state === 'ignored') {
        counts.ignored++
        continue
      }
      const own: InvoiceDocument | null = row.document === null ? null : JSON.parse(row.document)
      if (own !== null && isMoss(own)) {
        counts.moss++
        continue
      }
      counts.invoices++
      const document = certified.get(invoice.ix_id ?? 0)
      if (document !== undefined) certified.delete(invoice.ix_id ?? 0)
      report.add(entryOf(invoice, row, own, document))
    }
  return counts
}

function entryOf(
  invoice: Invoice,
  row: WalkedInvoice,
  document: InvoiceDocument | null,
  certified: Certified | undefined,
): VatEntry {
  const payment: PaymentFacts = JSON.parse(row.payment)
  const { parts, unread } = amountsOfInvoice(invoice, payment)
  const euros = parts && toEuros(parts, invoice, document)
  const foreign =
    euros === null && parts?.length !== 0 ? `no rate from ${invoice.currency} to euros is known` : ''
  return {
    customer_id: invoice.customer_id,
    invoice_id: invoice.id,
    number: invoice.number,
    document_id: certified?.document_id ?? invoice.ix_id,
    document_number: certified?.document_number ?? document?.number ?? null,
    document_date: certified?.document_date ?? document?.date ?? null,
    country: certified?.country ?? countryOf(invoice.customer_tax_id),
    exemption_code: certified?.exemption_code ?? document?.exemption_code ?? null,
    document: certified?.amounts ?? null,
    invoice:
      euros === null
        ? { parts, unread, currency: invoice.currency }
        : { parts: euros, unread, currency: 'eur' },
    reason: [certified === undefined ? reasonOfMissing(invoice, document) : '', foreign]
      .filter(Boolean)
      .join('; '),
  }
}

function reasonOfMissing({ ix_id, ix_status }: Invoice, document: InvoiceDocument | null): string {
  if (ix_id === null) return 'there is no document'
  if (ix_status !== null && !isInForce({ status: ix_status })) return `document ${ix_id} is ${ix_status}`
  return `document ${ix_id} is of ${document?.date ?? 'an unknown day'}`
}

function aloneOf({ amounts, invoices, ...document }: Certified, { dayOf }: VatMonth): VatEntry {
  const [tied] = invoices
  return {
    ...document,
    customer_id: tied?.customer_id ?? null,
    invoice_id: tied?.id ?? null,
    number: tied?.number ?? null,
    country: document.country ?? countryOf(tied?.customer_tax_id ?? null),
    document: amounts,
    invoice: null,
    reason:
      tied === undefined
        ? 'no invoice is tied to it'
        : tied.status === 'void' || tied.status === 'draft'
          ? `its invoice is ${tied.status === 'void' ? 'void' : 'a draft'}`
          : `its invoice is of ${dayOf(Date.parse(tied.issued_at))}`,
  }
}
