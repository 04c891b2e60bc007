/**
 * Saves the PDFs of invoices in a folder, and lists them in an index. Downloads keep to the rate limits of both
 * systems.
 */
import { createHash } from 'node:crypto'
import { open, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type DocumentKind, findNoPdf, type Invoice } from '../domain/invoice.ts'
import { Throttle } from '../sources/calls/throttle.ts'
import { safeFileName } from '../sources/pdf/file-name.ts'
import { type InvoicingSystem, type PaymentPlatform, type Pdf, SourceError } from '../sources/source.ts'
import type { WalkedInvoice } from '../store/store.ts'
import { type Column, columnsOfInvoice, type RowWriter } from './columns.ts'
import { openPartFile } from './part-file.ts'

const invoicesAtOnce = 16

/** The export's share of each system's rate limit. The rest is for clients of the API. */
const share = 1 / 4
const inFlight = 4

const maxAttempts = 4

/** After this many failures in a row, a system is asked for no more PDFs. */
const failuresToGiveUp = 10
/** Pause after an answer without `Retry-After`. */
const defaultPauseMs = 5_000
const longestPauseMs = 60_000

export interface SavedPdf {
  invoice: Invoice
  kind: DocumentKind
  outcome: 'saved' | 'kept' | 'none' | 'failed'
  /** Name of the PDF in the folder. Null when there is none. */
  file: string | null
  detail: string | null
}

export const indexColumns: readonly Column<SavedPdf>[] = [
  ...columnsOfInvoice('id', 'number', 'customer_id', 'display_name', 'customer_tax_id', 'issued_at'),
  ...columnsOfInvoice('currency', 'total_cents', 'total', 'status', 'ix_id', 'ix_status'),
  ...(['kind', 'outcome', 'file', 'detail'] as const).map(
    (name): Column<SavedPdf> => ({ name, kind: 'text', read: pdf => pdf[name] }),
  ),
]

export interface PdfExport {
  folder: string
  sources: { ix?: InvoicingSystem; payments?: PaymentPlatform }
  index: RowWriter<SavedPdf>
  signal: AbortSignal
  onProgress(pdfs: number, part: number): void
  onFailure(pdf: SavedPdf): void
}

/** Keeps PDFs that are already in the folder. Returns the number of each outcome. */
export async function exportPdfs(
  batches: AsyncIterable<readonly WalkedInvoice[]>,
  { folder, sources: { ix, payments }, index, signal, onProgress, onFailure }: PdfExport,
): Promise<Record<SavedPdf['outcome'], number>> {
  const counts = { saved: 0, kept: 0, none: 0, failed: 0 }
  const savers = [
    ix && createSaver('ix', ix, ({ ix_id }) => ix.openPdf(Number(ix_id), signal), folder, signal),
    payments && createSaver('payments', payments, ({ id }) => payments.openPdf(id, signal), folder, signal),
  ].filter(saver => saver !== undefined)
  let done = 0
  for await (const { invoices, total } of holdInvoices(batches, folder)) {
    const saving = invoices.flatMap(invoice => savers.map(save => save(invoice)))
    // A failure is thrown only after all downloads that run at once have ended.
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
 * Copies the invoices into an unlinked temporary file, so that no snapshot of the store stays open during slow
 * downloads. The file disappears when the process ends.
 */
async function* holdInvoices(batches: AsyncIterable<readonly WalkedInvoice[]>, folder: string) {
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

function createSaver(
  kind: DocumentKind,
  { perSecond = Number.POSITIVE_INFINITY }: PaymentPlatform | InvoicingSystem,
  openPdf: (invoice: Invoice) => Promise<Pdf>,
  folder: string,
  signal: AbortSignal,
): (invoice: Invoice) => Promise<SavedPdf> {
  const slots = new Throttle({ perSecond: Math.min(perSecond * share, 1_000), inFlight })
  let failuresInRow = 0

  async function download(invoice: Invoice, path: string): Promise<string | null> {
    for (let attempt = 1; ; attempt++) {
      if (failuresInRow >= failuresToGiveUp)
        return `not requested, because ${failuresToGiveUp} PDFs in a row failed before`
      await slots.take('', 'slowly')
      try {
        signal.throwIfAborted()
        await savePdf(await openPdf(invoice), path)
        failuresInRow = 0
        return null
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof SourceError)) throw error
        const pauseMs = pauseAfter(error)
        if (pauseMs !== null && attempt < maxAttempts) {
          slots.pause(pauseMs)
          continue
        }
        failuresInRow = error.failure === 'missing' ? 0 : failuresInRow + 1
        return error.message
      } finally {
        slots.done()
      }
    }
  }

  return async invoice => {
    const missing = findNoPdf(kind, invoice)
    if (missing !== null) {
      const detail = missing === 'draft' ? 'it is a draft and has no PDF yet' : 'no document is associated'
      return { invoice, kind, outcome: 'none', file: null, detail }
    }
    const file = pdfFileName(invoice, kind)
    const path = join(folder, file)
    const found = await stat(path).catch(() => null)
    if (found?.isFile() && found.size > 0) return { invoice, kind, outcome: 'kept', file, detail: null }
    const detail = await download(invoice, path)
    return detail === null
      ? { invoice, kind, outcome: 'saved', file, detail }
      : { invoice, kind, outcome: 'failed', file: null, detail }
  }
}

/** Milliseconds until the next attempt. Null when a retry makes no sense. */
function pauseAfter({ failure, retryAfter }: SourceError): number | null {
  if (retryAfter !== undefined) return Math.min(retryAfter * 1_000, longestPauseMs)
  return failure === 'timeout' || failure === 'not_ready' ? defaultPauseMs : null
}

async function savePdf({ body }: Pdf, path: string): Promise<void> {
  const file = await openPartFile(path)
  try {
    for await (const chunk of body) await file.write(chunk as Uint8Array)
    await file.finish()
  } finally {
    await file.discard()
  }
}

/** A longer id is replaced by its hash, because file names have a maximum length. */
const longestId = 64

/**
 * The name begins with the day, so that the folder is in the order of issue. The id keeps invoices with the same
 * number apart.
 */
export function pdfFileName({ issued_at, number, id }: Invoice, kind: DocumentKind): string {
  const named = number === null ? '' : safeFileName(number, 80)
  const identity = id.length <= longestId ? id : createHash('sha256').update(id).digest('hex').slice(0, 16)
  return `${[issued_at.slice(0, 10), ...(named === '' ? [] : [named]), identity, kind].join('_')}.pdf`
}
