/** Writes invoices as CSV that Excel opens in Portuguese or English. Used by the billing page and by `fatura export --format csv-pt`. */
import type { Expanded } from './expanded.ts'
import type { Invoice } from './invoice.ts'
import { describeDocument, invoiceWords, documentTypeWords as types } from './invoice-words.ts'
import { includedTaxOf, writeAmount } from './money.ts'
import { sumBases, writeTaxes } from './taxes.ts'

/** UTF-8's byte order mark. Without it, Excel shows accents wrongly. A line such as `sep=;` would disable the mark. */
export const byteOrderMark = '\ufeff'

/** Tells whether an invoice belongs in the books. A draft belongs there only when the caller asked for drafts. */
export function isForBooks({ status }: Pick<Invoice, 'status'>, asked: string | undefined): boolean {
  return status !== 'draft' || asked === 'draft'
}

/** Creates a writer of CSV rows. `dayOf` converts a moment in milliseconds to a day, YYYY-MM-DD. */
export function createInvoiceCsv(language: 'pt' | 'en', dayOf: (moment: number) => string) {
  const [separator, point] = language === 'pt' ? [';', ','] : [',', '.']
  const words = invoiceWords[language]
  const index = language === 'pt' ? 0 : 1
  const text = (value: string | number | null) => defuse(String(value ?? ''))
  const number = (value: string) => value.replace('.', point)
  const amount = (cents: number, { currency }: Invoice) => number(writeAmount(cents, currency))
  const known = (cents: number | null | undefined, invoice: Invoice) =>
    cents == null ? '' : amount(cents, invoice)
  const columns: [pt: string, en: string, cell: (invoice: Invoice & Expanded) => string][] = [
    ['Fatura', 'Invoice', invoice => text(invoice.number)],
    ['Data', 'Date', invoice => text(dayOf(Date.parse(invoice.issued_at)))],
    ['Cliente', 'Customer', invoice => text(invoice.display_name)],
    ['NIF', 'Tax ID', invoice => text(invoice.customer_tax_id)],
    ['Pagamento', 'Payment', invoice => text(words.status[invoice.status])],
    ['Documento certificado', 'Certified document', invoice => text(describeDocument(invoice, words))],
    ['Documento certificado (ID)', 'Certified document (ID)', invoice => text(invoice.ix_id)],
    ['Documento', 'Document', ({ document }) => text(document?.number ?? null)],
    [
      'Tipo',
      'Document type',
      ({ document }) => text(document ? (types[document.type]?.[index] ?? document.type) : null),
    ],
    ['ATCUD', 'ATCUD', ({ document }) => text(document?.atcud ?? null)],
    ['Data do documento', 'Document date', ({ document }) => text(document?.date ?? null)],
    ['Vencimento', 'Due date', ({ payment }) => text(payment?.due_date ?? null)],
    ['Subtotal', 'Subtotal', invoice => amount(invoice.subtotal_cents, invoice)],
    ['Desconto', 'Discount', invoice => amount(invoice.discount_cents, invoice)],
    ['IVA %', 'Tax %', invoice => number(String(invoice.tax_percent ?? ''))],
    ['IVA', 'Tax', invoice => amount(invoice.tax_cents, invoice)],
    [
      'IVA incluído no subtotal',
      'Tax included in the subtotal',
      invoice => amount(includedTaxOf(invoice), invoice),
    ],
    ['Total', 'Total', invoice => amount(invoice.total_cents, invoice)],
    ['Base tributável', 'Tax base', invoice => known(sumBases(invoice.taxes ?? null), invoice)],
    [
      'IVA por taxa',
      'Tax by rate',
      ({ taxes = null, currency }) => text(writeTaxes(taxes, currency)?.replaceAll('.', point) ?? null),
    ],
    ['Pago', 'Paid', invoice => known(invoice.payment?.paid_cents, invoice)],
    ['Por pagar', 'To pay', invoice => known(invoice.payment?.remaining_cents, invoice)],
    ['Creditado', 'Credited', invoice => known(invoice.payment?.credited_cents, invoice)],
    ['Moeda', 'Currency', invoice => text(invoice.currency.toUpperCase())],
    ['Fatura (ID)', 'Invoice (ID)', invoice => text(invoice.id)],
    ['Cliente (ID)', 'Customer (ID)', invoice => text(invoice.customer_id)],
  ]
  const writeRow = (cells: readonly string[]) =>
    `${cells.map(cell => quote(cell, separator)).join(separator)}\r\n`
  return {
    head: byteOrderMark + writeRow(columns.map(([pt, en]) => (language === 'pt' ? pt : en))),
    row: (invoice: Invoice & Expanded) => writeRow(columns.map(([, , cell]) => cell(invoice))),
  }
}

/** Characters that begin a formula in spreadsheets. Some programs convert the full-width signs to the plain ones. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/

/** Puts an apostrophe before a formula, so that spreadsheets treat it as text. */
export function defuse(text: string): string {
  return formula.test(text) ? `'${text}` : text
}

export function quote(text: string, separator: string): string {
  return text.includes(separator) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
