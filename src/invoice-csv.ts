/** Invoices as a table for spreadsheets, as the language's own Excel opens it: of the page, and of `fatura export --format csv-pt`. */
import type { Invoice } from './invoice.ts'
import { describeDocument, invoiceWords } from './invoice-words.ts'
import { includedTaxOf, writeAmount } from './money.ts'

/** Without the mark, Excel takes the text for one without accents; a line that names the separator would defeat it. */
export const byteOrderMark = '\ufeff'

const columns = {
  pt: [
    ...[
      'Fatura',
      'Data',
      'Cliente',
      'NIF',
      'Pagamento',
      'Documento certificado',
      'Documento certificado (ID)',
    ],
    ...['Subtotal', 'Desconto', 'IVA %', 'IVA', 'IVA incluído no subtotal', 'Total', 'Moeda'],
    ...['Fatura (ID)', 'Cliente (ID)'],
  ],
  en: [
    ...['Invoice', 'Date', 'Customer', 'Tax ID', 'Payment', 'Certified document', 'Certified document (ID)'],
    ...['Subtotal', 'Discount', 'Tax %', 'Tax', 'Tax included in the subtotal', 'Total', 'Currency'],
    ...['Invoice (ID)', 'Customer (ID)'],
  ],
} as const

type Cell = { text: string } | { number: string }

/** `dayOf` returns the day of a moment in milliseconds, YYYY-MM-DD. */
export function createInvoiceCsv(language: 'pt' | 'en', dayOf: (moment: number) => string) {
  const [separator, point] = language === 'pt' ? [';', ','] : [',', '.']
  const words = invoiceWords[language]
  const writeCell = (cell: Cell) =>
    'number' in cell ? quote(cell.number.replace('.', point), separator) : quote(defuse(cell.text), separator)
  const writeRow = (cells: readonly Cell[]) => `${cells.map(writeCell).join(separator)}\r\n`
  const text = (value: string | number | null) => ({ text: String(value ?? '') })

  return {
    head: byteOrderMark + writeRow(columns[language].map(text)),
    row(invoice: Invoice): string {
      const { currency } = invoice
      const amount = (cents: number) => ({ number: writeAmount(cents, currency) })
      return writeRow([
        text(invoice.number),
        text(dayOf(Date.parse(invoice.issued_at))),
        text(invoice.display_name),
        text(invoice.customer_tax_id),
        text(words.status[invoice.status]),
        text(describeDocument(invoice, words)),
        text(invoice.ix_id),
        amount(invoice.subtotal_cents),
        amount(invoice.discount_cents),
        { number: invoice.tax_percent === null ? '' : String(invoice.tax_percent) },
        amount(invoice.tax_cents),
        amount(includedTaxOf(invoice)),
        amount(invoice.total_cents),
        text(currency.toUpperCase()),
        text(invoice.id),
        text(invoice.customer_id),
      ])
    },
  }
}

/** Beginnings of formulas in spreadsheets; also in the wide forms that some fold into the plain ones. */
const formula = /^[=+\-@\t\r\n＝＋－＠]/

/** An apostrophe before a formula makes it text. */
export function defuse(text: string): string {
  return formula.test(text) ? `'${text}` : text
}

export function quote(text: string, separator: string): string {
  return text.includes(separator) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
