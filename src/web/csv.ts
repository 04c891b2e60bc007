/** Invoices as a table for spreadsheets, as the language's own Excel opens it. */
import type { Invoice } from '../client/client.ts'
import { includedTaxOf, writeAmount } from '../money.ts'
import { describeDocument } from './badge.tsx'
import type { Language, Words } from './words/words.ts'

/** Without the mark, Excel takes the text for one without accents; a line that names the separator would defeat it. */
const byteOrderMark = '\ufeff'

type Cell = { text: string } | { number: string }

export function createCsv(language: Language, words: Words) {
  const [separator, point] = language === 'pt' ? [';', ','] : [',', '.']
  const writeCell = (cell: Cell) =>
    'number' in cell ? quote(cell.number.replace('.', point), separator) : quote(defuse(cell.text), separator)
  const writeRow = (cells: readonly Cell[]) => `${cells.map(writeCell).join(separator)}\r\n`
  const text = (value: string | number | null) => ({ text: String(value ?? '') })

  return {
    head: byteOrderMark + writeRow(columns(words).map(text)),
    row(invoice: Invoice): string {
      const { currency } = invoice
      const amount = (cents: number) => ({ number: writeAmount(cents, currency) })
      return writeRow([
        text(invoice.number),
        text(invoice.issued_at.slice(0, 10)),
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
      ])
    },
  }
}

function columns(words: Words): string[] {
  const { column } = words
  return [
    ...[column.number, column.issued, words.customer, words.taxId, column.status, column.document],
    ...[`${column.document} (ID)`, words.subtotal, words.discount, `${words.tax(null)} %`, words.tax(null)],
    ...[words.taxInSubtotal, words.column.total, words.currency, `${column.number} (ID)`],
  ]
}

/** Keeps a spreadsheet from reading a text as a formula. */
function defuse(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
}

function quote(text: string, separator: string): string {
  return text.includes(separator) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
