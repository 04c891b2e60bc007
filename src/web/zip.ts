/** Writes the PDFs of many invoices into a ZIP while they arrive. This file is loaded only when a ZIP is requested. */
import { downloadZip } from 'client-zip'
import { dayIn } from '../domain/calendar.ts'
import { creditTypes } from '../domain/document.ts'
import { findNoPdf } from '../domain/invoice.ts'
import { createInvoiceCsv, isForBooks } from '../domain/invoice-csv.ts'
import { FaturaError, type InvoiceWalk, type ListedInvoice, type PdfKind } from '../sdk/client.ts'
import type { PageContext } from './context.ts'
import { describeProblem } from './problem.ts'
import { nameDocument } from './related-documents.tsx'

export interface ZipOptions
  extends Pick<PageContext, 'client' | 'session' | 'brand' | 'language' | 'words' | 'downloads'> {
  walk: InvoiceWalk
  status: string | undefined
  signal: AbortSignal
  /** Called after each invoice with the number of invoices so far. */
  onStep(done: number): void
  /** Called after each PDF. `isFetched` is false when the PDF could not be fetched. */
  onPdf(isFetched: boolean): void
}

/** The service allows this number of simultaneous downloads per customer. */
const atOnce = 4

interface Wanted {
  invoice: ListedInvoice
  kind: PdfKind
  /** Name of the folder in the ZIP. missing.txt also uses this name. */
  folder: string
}

type Fetched = { name: string; input: Blob } | { missing: string }

export function zipPdfs(options: ZipOptions): ReadableStream<Uint8Array> {
  return downloadZip(listEntries(options)).body as ReadableStream<Uint8Array>
}

async function* listEntries(options: ZipOptions): AsyncGenerator<{ name: string; input: Blob | string }> {
  const { words, onPdf } = options
  const csv = createInvoiceCsv(options.language, dayIn(options.brand.timeZone))
  const rows = [csv.head]
  const names = new Set<string>()
  const missing: string[] = []
  const wanted = listWanted(options, invoice => {
    if (isForBooks(invoice, options.status)) rows.push(csv.row(invoice))
  })
  for await (const fetched of severalAtOnce(wanted, each => fetchPdf(options, each))) {
    onPdf('input' in fetched)
    if ('input' in fetched) yield { ...fetched, name: uniqueName(fetched.name, names) }
    else missing.push(fetched.missing)
  }
  yield { name: 'invoices.csv', input: rows.join('') }
  if (missing.length > 0)
    yield { name: 'missing.txt', input: `${[words.missingTitle, ...missing].join('\r\n')}\r\n` }
}

/** Yields the PDFs of each invoice: the certified document, the platform's PDF, and the credit notes. */
async function* listWanted(
  options: ZipOptions,
  onInvoice: (invoice: ListedInvoice) => void,
): AsyncGenerator<Wanted> {
  const { walk, words, downloads, signal, onStep } = options
  for await (const invoice of walk) {
    signal.throwIfAborted()
    onInvoice(invoice)
    if (downloads.ix && findNoPdf('ix', invoice) === null)
      yield { invoice, kind: 'ix', folder: words.folderIx }
    if (downloads.payments && findNoPdf('payments', invoice) === null)
      yield { invoice, kind: 'payments', folder: words.folderPayments }
    if (downloads.ix && (invoice.payment?.credited_cents ?? 0) > 0) yield* listCreditNotes(options, invoice)
    onStep(walk.seen)
  }
}

async function* listCreditNotes(
  { client, session, words, signal }: ZipOptions,
  invoice: ListedInvoice,
): AsyncGenerator<Wanted> {
  const { data } = await client.document.get(session.customer, invoice.id, { signal })
  for (const { id, type, status } of data.related ?? [])
    if (creditTypes.includes(type) && status !== 'draft')
      yield { invoice, kind: { related: id }, folder: nameDocument({ type, number: null }, words) }
}

/** Returns the PDF, or a line for missing.txt. A failed PDF does not stop the others. */
async function fetchPdf({ client, session, signal, words }: ZipOptions, wanted: Wanted): Promise<Fetched> {
  const { invoice, kind, folder } = wanted
  try {
    const { fileName, body } = await client.downloadPdf(session.customer, invoice.id, kind, { signal })
    return { name: `${folder}/${fileName}`, input: await new Response(body).blob() }
  } catch (error) {
    // Without a connection or access, all other PDFs would fail as well.
    if (!(error instanceof FaturaError) || error.code === 'connection_failed' || error.status === 401)
      throw error
    const number = invoice.document?.number ?? invoice.number ?? invoice.id
    const reasons: Partial<Record<typeof error.code, string>> = {
      document_not_found: words.documentMissing,
      document_not_issued: words.pdfDraft,
      document_not_ready: words.pdfNotReady,
    }
    const reason = reasons[error.code] ?? words[describeProblem(error, session.token).kind]
    return { missing: `${folder}, ${number}: ${reason}` }
  }
}

/** Runs several tasks at once and yields their results in the order of the items. */
async function* severalAtOnce<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result> {
  const running: Promise<Result>[] = []
  for await (const item of items) {
    const result = work(item)
    // The task may fail before its result is awaited. Without this handler, that would be an unhandled rejection.
    result.catch(() => {})
    running.push(result)
    if (running.length >= atOnce) yield running.shift() as Promise<Result>
  }
  for (const result of running) yield result
}

function uniqueName(name: string, names: Set<string>): string {
  let unique = name
  for (let copy = 2; names.has(unique); copy++) unique = name.replace(/(\.pdf)?$/, ` (${copy})$1`)
  names.add(unique)
  return unique
}
