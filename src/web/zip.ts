/** The PDFs of many invoices as one ZIP, made as they come in. Loaded when it is asked for. */
import { downloadZip } from 'client-zip'
import { dayIn } from '../calendar.ts'
import { type DocumentKind, FaturaError, type Invoice, type InvoiceWalk } from '../client/client.ts'
import { documentKinds, findNoPdf } from '../invoice.ts'
import { createInvoiceCsv } from '../invoice-csv.ts'
import type { PageContext } from './context.ts'
import { nameOf } from './pdf-button.tsx'

export interface ZipOptions extends Pick<PageContext, 'client' | 'brand' | 'language' | 'words'> {
  walk: InvoiceWalk
  signal: AbortSignal
  /** Called after each invoice with the number of invoices so far. */
  onStep(done: number): void
  /** Called for each PDF: whether it could be fetched. */
  onPdf(isFetched: boolean): void
}

interface Entry {
  name: string
  input: ReadableStream<Uint8Array> | string
}

export function zipPdfs(options: ZipOptions): ReadableStream<Uint8Array> {
  return downloadZip(listEntries(options)).body as ReadableStream<Uint8Array>
}

async function* listEntries(options: ZipOptions): AsyncGenerator<Entry> {
  const { walk, words, signal, onStep, onPdf } = options
  const csv = createInvoiceCsv(options.language, dayIn(options.brand.timeZone))
  const names = new Set<string>()
  const missing: string[] = []
  let table = csv.head
  for await (const invoice of walk) {
    signal.throwIfAborted()
    table += csv.row(invoice)
    for (const kind of documentKinds) {
      if (findNoPdf(kind, invoice) !== null) continue
      const entry = await openEntry(options, invoice, kind)
      onPdf(typeof entry !== 'string')
      if (typeof entry === 'string') missing.push(entry)
      else yield { ...entry, name: uniqueName(entry.name, names) }
    }
    onStep(walk.seen)
  }
  yield { name: 'invoices.csv', input: table }
  if (missing.length > 0)
    yield { name: 'missing.txt', input: `${[words.missingTitle, ...missing].join('\r\n')}\r\n` }
}

/** The entry, or the line of missing.txt. One PDF that fails does not stop the others. */
async function openEntry(
  { client, signal, words }: ZipOptions,
  { customer_id, id, number }: Invoice,
  kind: DocumentKind,
): Promise<Entry | string> {
  try {
    const { fileName, body } = await client.downloadPdf(customer_id, id, kind, { signal })
    return { name: `${nameOf(kind, words)}/${fileName}`, input: body }
  } catch (error) {
    // Without a connection or access, none of the others comes either.
    if (!(error instanceof FaturaError) || error.code === 'connection_failed' || error.status === 401)
      throw error
    return `${number ?? id}: ${nameOf(kind, words)} (${error.code})`
  }
}

function uniqueName(name: string, names: Set<string>): string {
  let unique = name
  for (let copy = 2; names.has(unique); copy++) unique = name.replace(/(\.pdf)?$/, ` (${copy})$1`)
  names.add(unique)
  return unique
}
