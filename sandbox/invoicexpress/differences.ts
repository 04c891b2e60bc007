/** Plants differences between the two systems for a reconciliation to find. */

import { addWorkingDays, dayMs, dayOf } from '../../src/domain/calendar.ts'
import { integer, letters, pick } from '../random.ts'
import type { StripeInvoice } from '../stripe/objects.ts'
import { issueNote, notesOf } from './credit-notes.ts'
import { type Ledger, nothing } from './ledger.ts'
import { chargedBy, formatDay, type IxDocument, parseDay, toCents } from './objects.ts'
import { fittingStatus, recordCreating, recordFailed } from './states.ts'

export const differenceKinds = [
  /** A paid invoice has no document and no recorded document. */
  'paid_without_document',
  /** A void invoice has a document in force. */
  'live_document_of_void',
  /** The document's total is too high by the smallest unit of the currency. */
  'total_by_smallest_unit',
  'total',
  /** The creation of a document began three days ago and never ended. */
  'stuck_creating',
  /** The creation of a document failed, with a recorded reason. */
  'failed',
  /** The document's client has another tax ID than the invoice. */
  'tax_id',
  /** The document has another tax and the same total. */
  'tax',
  /** The invoice has a tax ID, and the document's client has none. */
  'tax_id_one_side',
  /** Stripe has a credit note that the document lacks. */
  'credit_note_missing',
  /** The document has a credit note of a quarter of its total that Stripe lacks. */
  'credit_note_unmatched',
  /** The document of an open invoice is settled. */
  'open_settled',
  /** An open invoice has no document and no recorded document. */
  'open_without_document',
  /** The document is dated in the month before. */
  'wrong_month',
  /** The document is dated on the sixth working day after the payment. The law allows five. */
  'late',
  /** A simplified invoice charges more than 100 euros. */
  'simplified_over_limit',
  /** The invoice says that the client owes the tax, and the document has the code of an exemption. */
  'exemption',
  /** The document of a paid invoice is final and not settled. */
  'paid_not_settled',
  /** An invoice has two documents in force. */
  'several_documents',
  /** A document in force refers to an invoice that does not exist. */
  'document_of_unknown_invoice',
  /** A document in force has no reference. */
  'document_without_invoice',
] as const
export type DifferenceKind = (typeof differenceKinds)[number]

export interface Planted {
  kind: DifferenceKind
  /** Null for a document without an invoice. */
  invoice_id: string | null
  document_id: number | null
}

/** Plants a difference at an invoice and its document. Returns other ids when the difference concerns other records. */
type Plant = (
  ledger: Ledger,
  invoice: StripeInvoice,
  document: IxDocument,
) => Pick<Planted, 'invoice_id' | 'document_id'> | undefined

const threeDays = 3 * 86_400_000

const plants: Record<DifferenceKind, Plant> = {
  paid_without_document(ledger, invoice, document) {
    unlink(ledger, invoice, document)
  },
  live_document_of_void(ledger, _invoice, document) {
    ledger.put({ ...document, status: 'final' })
  },
  paid_not_settled(ledger, _invoice, document) {
    ledger.put({ ...document, status: 'final' })
  },
  several_documents(ledger, invoice, { status }) {
    ledger.issue(invoice, { status })
  },
  document_of_unknown_invoice(ledger, invoice) {
    const reference = `in_1${letters(ledger.random, 24)}`
    return { invoice_id: reference, document_id: ledger.issue(invoice, { status: 'settled', reference }).id }
  },
  document_without_invoice(ledger, invoice) {
    const { id } = ledger.issue(invoice, { status: 'settled', reference: null })
    return { invoice_id: null, document_id: id }
  },
  total_by_smallest_unit(ledger, _invoice, document) {
    ledger.raise(document, 1)
  },
  total(ledger, _invoice, document) {
    ledger.raise(document, integer(ledger.random, 500, 9_999))
  },
  stuck_creating(ledger, invoice, document) {
    unlink(ledger, invoice, document)
    recordCreating(ledger, invoice, threeDays)
  },
  failed(ledger, invoice, document) {
    unlink(ledger, invoice, document)
    recordFailed(ledger, invoice)
  },
  tax_id(ledger, invoice, document) {
    changeTaxId(ledger, invoice, document, String(integer(ledger.random, 200_000_000, 299_999_999)))
  },
  tax_id_one_side(ledger, invoice, document) {
    changeTaxId(ledger, invoice, document, null)
  },
  tax(ledger, _invoice, document) {
    ledger.put(atRate(document, reducedRate))
  },
  credit_note_missing(ledger, _invoice, document) {
    for (const { id } of notesOf(ledger, document.id)) ledger.remove(id)
  },
  credit_note_unmatched(ledger, invoice, document) {
    issueNote(ledger, document, Math.ceil(invoice.total / 4), invoice)
  },
  open_settled(ledger, _invoice, document) {
    ledger.put({ ...document, status: 'settled' })
  },
  open_without_document(ledger, invoice, document) {
    unlink(ledger, invoice, document)
  },
  wrong_month(ledger, _invoice, document) {
    ledger.put({ ...document, date: dayOfLastMonth(document) })
  },
  late(ledger, invoice, document) {
    ledger.put({ ...document, date: toSlashes(lateDayOf(invoice) ?? '') })
  },
  simplified_over_limit(ledger, invoice, document) {
    const type = 'SimplifiedInvoice'
    ledger.put({ ...document, type, sequence_number: ledger.number(type) })
    ledger.record(invoice.id, { ix_type: type })
  },
  exemption(ledger, invoice) {
    const total_taxes = invoice.total_taxes.map(tax => ({ ...tax, taxability_reason: 'reverse_charge' }))
    ledger.account.invoices.set(invoice.id, { ...invoice, total_taxes })
    ledger.record(invoice.id, { regime: 'autoliquidação' })
  },
}

/** Gives the document a new client, so that the customer's other documents stay correct. */
function changeTaxId(
  ledger: Ledger,
  invoice: StripeInvoice,
  document: IxDocument,
  fiscal_id: string | null,
): void {
  const client = ledger.addClient(invoice)
  ledger.clients.set(client.id, { ...client, fiscal_id })
  ledger.put({ ...document, client: { ...document.client, id: client.id, fiscal_id } })
}

/** The reduced Portuguese tax rate, for example for food. */
const reducedRate = 6

/** Changes the tax rate of all items and keeps the price that includes the tax. */
function atRate(document: IxDocument, rate: number): IxDocument {
  const charged = chargedBy(document)
  const without = (price: number) => toCents((100 * price) / (100 + rate)) / 100
  const tax = { id: 1_000 + 100 * rate, name: `IVA${rate}`, value: rate }
  const before_taxes = without(charged)
  return {
    ...document,
    before_taxes,
    taxes: toCents(charged - before_taxes) / 100,
    sum: toCents(before_taxes + document.discount) / 100,
    items: document.items.map(item => {
      const subtotal = without(item.total)
      return { ...item, tax, subtotal, tax_amount: toCents(item.total - subtotal) / 100 }
    }),
  }
}

function taxOf({ total, total_excluding_tax }: StripeInvoice): number {
  return total - (total_excluding_tax ?? total)
}

const toSlashes = (day: string) => day.split('-').reverse().join('/')

/** Returns the last day of the month before the document's date. */
function dayOfLastMonth({ date }: IxDocument): string {
  return toSlashes(dayOf(Date.parse(`${parseDay(date)?.slice(0, 7)}-01`) - dayMs))
}

/** Returns the sixth working day after the first payment as YYYY-MM-DD. Null when nothing was paid. */
function lateDayOf({ payments }: StripeInvoice): string | null {
  const paid = payments.data.flatMap(({ status_transitions }) => status_transitions.paid_at ?? [])
  return paid.length === 0 ? null : addWorkingDays(parseDay(formatDay(Math.min(...paid))) ?? '', 6)
}

/** Whether the document can be dated late. The late day must not be in the future, and must be in the document's month. */
function isLateFitting(invoice: StripeInvoice, document: IxDocument, clock: number): boolean {
  const late = lateDayOf(invoice)
  const today = parseDay(formatDay(clock)) ?? ''
  return late !== null && late <= today && late.slice(0, 7) === parseDay(document.date)?.slice(0, 7)
}

function unlink(ledger: Ledger, invoice: StripeInvoice, document: IxDocument): void {
  ledger.remove(document.id)
  ledger.ofInvoice.delete(invoice.id)
  ledger.record(invoice.id, nothing)
}

type Fits = (invoice: StripeInvoice, document: IxDocument, ledger: Ledger) => boolean

const isPaid: Fits = ({ status, total }) => status === 'paid' && total > 0
const hasTaxId: Fits = ({ status, customer_tax_ids }) =>
  status !== 'void' && (customer_tax_ids ?? []).length > 0

/** Whether a difference can be planted at an invoice. A kind without a rule fits every invoice in force. */
const fitting: Partial<Record<DifferenceKind, Fits>> = {
  live_document_of_void: ({ status }) => status === 'void',
  tax_id: hasTaxId,
  tax_id_one_side: hasTaxId,
  paid_without_document: isPaid,
  paid_not_settled: ({ status }) => status === 'paid',
  // A simplified invoice is excluded, because a higher total could exceed its limit.
  total: (invoice, { type }) => isInForce(invoice) && type !== 'SimplifiedInvoice',
  // A document with a withheld tax is excluded, because another tax would change its total.
  tax: (invoice, { taxes, before_taxes, retention }) =>
    isInForce(invoice) && retention === null && taxes >= 1 && taxes > before_taxes / 10,
  credit_note_missing: (_invoice, { id }, ledger) => notesOf(ledger, id).length > 0,
  credit_note_unmatched: (invoice, { id }, ledger) =>
    invoice.status === 'paid' && invoice.total >= 100 && notesOf(ledger, id).length === 0,
  open_settled: ({ status, amount_remaining }) => status === 'open' && amount_remaining > 0,
  open_without_document: ({ status, total }) => status === 'open' && total > 0,
  wrong_month: invoice => isInForce(invoice) && isOfItsDay(invoice),
  late: (invoice, document, { account }) =>
    isOfItsDay(invoice) && isLateFitting(invoice, document, account.clock),
  simplified_over_limit: ({ status }, document) =>
    status === 'paid' &&
    chargedBy(document) > 100 &&
    document.retention === null &&
    document.type !== 'SimplifiedInvoice',
  exemption: (invoice, { tax_exemption }) =>
    isInForce(invoice) &&
    invoice.total_taxes.length > 0 &&
    taxOf(invoice) === 0 &&
    invoice.total_taxes.every(({ taxability_reason }) => taxability_reason === 'zero_rated') &&
    tax_exemption === 'M07',
}

function isInForce({ status }: StripeInvoice): boolean {
  return status !== 'void' && status !== 'draft'
}

/** Whether the invoice's date at Stripe is the moment of its finalization. The date of some invoices is a day earlier. */
function isOfItsDay({ effective_at, status_transitions }: StripeInvoice): boolean {
  return effective_at === status_transitions.finalized_at
}

/**
 * Plants a difference at the given invoice, or at any invoice that fits. Only invoices without another difference (`isOrdinary`) are used.
 */
export function plantDifference(
  ledger: Ledger,
  kind: DifferenceKind,
  isOrdinary: (invoiceId: string) => boolean,
  invoiceId?: string,
): Planted {
  const { account, random, ofInvoice, documents } = ledger
  const found: [StripeInvoice, IxDocument][] = []
  for (const id of invoiceId === undefined ? ofInvoice.keys() : [invoiceId]) {
    const invoice = account.invoices.get(id)
    const document = documents.get(ofInvoice.get(id) ?? 0)
    if (invoice === undefined || document === undefined || !isOrdinary(id)) continue
    const fits = fitting[kind] ?? isInForce
    if (fits(invoice, document, ledger) && document.status === fittingStatus(invoice))
      found.push([invoice, document])
  }
  if (found.length === 0)
    throw new Error(`There is no ${invoiceId ?? 'invoice'} with a matching document where ${kind} fits.`)
  const [invoice, document] = pick(random, found)
  const otherIds = plants[kind](ledger, invoice, document)
  if (otherIds !== undefined) return { kind, ...otherIds }
  return { kind, invoice_id: invoice.id, document_id: documents.has(document.id) ? document.id : null }
}
