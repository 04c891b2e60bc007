/** Invoices and documents as a PDF of one page, written by hand: a few lines of text in a font that every reader has. */
import { formatTotal, type IxDocument, ixTypes } from './invoicexpress/objects.ts'
import type { StripeInvoice } from './stripe/objects.ts'

export function createPdf(invoice: StripeInvoice): Buffer {
  const { number, total, currency, customer_name, effective_at, created } = invoice
  return write([
    `Fatura ${number}`,
    `Data: ${new Date((effective_at ?? created) * 1000).toISOString().slice(0, 10)}`,
    `Cliente: ${customer_name ?? 'não indicado'}`,
    `Total: ${formatAmount(total, currency)}`,
    disclaimer,
  ])
}

export function createDocumentPdf(document: IxDocument): Buffer {
  const { type, sequence_number, date, client, reference } = document
  return write([
    `${ixTypes[type].title} ${sequence_number}`,
    `Data: ${date}`,
    `Cliente: ${client.name}`,
    `Referência: ${reference ?? 'nenhuma'}`,
    `Total: ${formatTotal(document)}`,
    disclaimer,
  ])
}

const disclaimer = 'Documento de demonstração, sem valor fiscal.'

function write(text: readonly string[]): Buffer {
  const content = [
    'BT /F1 18 Tf 22 TL 72 760 Td',
    ...text.map(line => `(${escapeText(line)}) Tj T*`),
    'ET',
  ].join('\n')
  return assemble([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  ])
}

/** Objects are found by their offset in bytes; in Latin-1 a character is one. */
function assemble(objects: readonly string[]): Buffer {
  let file = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n'
  const offsets: number[] = []
  for (const [index, object] of objects.entries()) {
    offsets.push(file.length)
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
  }
  const start = file.length
  const entries = offsets.map(offset => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}`
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(file, 'latin1')
}

/** What Latin-1 does not have becomes a question mark. */
function escapeText(text: string): string {
  return text.replace(/[^\x20-\x7e\xa0-\xff]/gu, '?').replace(/[\\()]/g, '\\$&')
}

const decimals: Record<string, number> = { jpy: 0, kwd: 3 }

/** In the currency's major unit, as in 12.34 EUR. */
export function formatAmount(amount: number, currency: string): string {
  const places = decimals[currency] ?? 2
  return `${(amount / 10 ** places).toFixed(places)} ${currency.toUpperCase()}`
}
