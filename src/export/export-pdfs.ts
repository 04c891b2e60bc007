/** Exports the PDFs of invoices, and an index of them. */
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DocumentKind, Invoice } from '../invoice.ts'
import type { WalkedInvoice } from '../store/store.ts'
import { type Column, invoiceColumns, type RowWriter } from './columns.ts'
import type { PdfOutcome, SavedPdf, SavePdf } from './save-pdfs.ts'

/** Invoices whose PDFs are saved at once. */
const invoicesAtOnce = 16

const ofInvoice = [
  ...['id', 'number', 'customer_id', 'display_name', 'customer_tax_id', 'issued_at'],
  ...['currency', 'total_cents', 'total', 'status', 'ix_id', 'ix_status'],
]

/** One row a PDF, saved or not. */
export const indexColumns: readonly Column<SavedPdf>[] = [
  ...ofInvoice.flatMap(wanted =>
    invoiceColumns
      .filter(({ name }) => name === wanted)
      .map(({ kind, read }): Column<SavedPdf> => {
        return { name: wanted === 'id' ? 'invoice_id' : wanted, kind, read: ({ invoice }) => read(invoice) }
      }),
  ),
  { name: 'kind', kind: 'text', read: ({ kind }) => kind },
  { name: 'outcome', kind: 'text', read: ({ outcome }) => outcome },
  { name: 'file', kind: 'text', read: ({ file }) => file },
  { name: 'detail', kind: 'text', read: ({ detail }) => detail },
]

export interface PdfExport {
  folder: string
  kinds: readonly DocumentKind[]
  save: SavePdf
  index: RowWriter<SavedPdf>
  onProgress(pdfs: number, part: number): void
  onFailure(pdf: SavedPdf): void
}

export type PdfCounts = Record<PdfOutcome, number>

export async function exportPdfs(
  batches: AsyncIterable<readonly WalkedInvoice[]>,
  { folder, kinds, save, index, onProgress, onFailure }: PdfExport,
): Promise<PdfCounts> {
  const counts: PdfCounts = { saved: 0, kept: 0, none: 0, failed: 0 }
  let done = 0
  for await (const { invoices, total } of holdInvoices(batches, folder)) {
    const saving = invoices.flatMap(invoice => kinds.map(kind => save(invoice, kind)))
    // After a failure the others still end before it is thrown.
    await Promise.allSettled(saving)
    const pdfs = await Promise.all(saving)
    for (const pdf of pdfs) {
      counts[pdf.outcome]++
      if (pdf.outcome === 'failed') onFailure(pdf)
    }
    await index.write(pdfs)
    done += invoices.length
    onProgress(counts.saved + counts.kept, done / total)
  }
  await index.end()
  return counts
}

/**
 * Downloads take long, and a snapshot must not be kept open meanwhile: the invoices wait in an unlinked file, which disappears
 * with the process, however it ends.
 */
async function* holdInvoices(
  batches: AsyncIterable<readonly WalkedInvoice[]>,
  folder: string,
): AsyncGenerator<{ invoices: Invoice[]; total: number }> {
  const path = join(folder, `.invoices.${process.pid}.part`)
  const file = await open(path, 'w+', 0o600)
  try {
    await rm(path)
    let total = 0
    for await (const batch of batches) {
      total += batch.length
      await file.writeFile(batch.map(({ summary }) => `${summary}\n`).join(''))
    }
    let invoices: Invoice[] = []
    for await (const line of file.readLines({ start: 0, autoClose: false })) {
      invoices.push(JSON.parse(line))
      if (invoices.length < invoicesAtOnce) continue
      yield { invoices, total }
      invoices = []
    }
    if (invoices.length > 0) yield { invoices, total }
  } finally {
    await file.close()
  }
}
