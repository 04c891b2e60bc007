/** The part of `fatura export` that fetches PDFs. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Write } from '../../export/columns.ts'
import { type CsvFormat, createCsvWriter } from '../../export/csv.ts'
import { exportPdfs, indexColumns, type PdfCounts } from '../../export/export-pdfs.ts'
import { createPdfSaver, type PdfSources, type SavedPdf } from '../../export/save-pdfs.ts'
import { type DocumentKind, documentKinds } from '../../invoice.ts'
import type { OperatorStore } from '../../store/store.ts'
import { CliError } from '../terminal/cli-error.ts'
import type { Progress } from '../terminal/progress.ts'
import { printable } from '../terminal/table.ts'
import type { ExportScope } from './export-filter.ts'

export interface PdfOptions {
  folder: string
  /** Both when not given. */
  kind: DocumentKind | undefined
  format: CsvFormat
  sources: PdfSources
  /** Into the index. */
  write: Write
  signal: AbortSignal
}

const indexName = 'index.csv'

/** More would scroll away the summary; all of them are in the index. */
const shownFailures = 20

/** Refuses, before anything is fetched, a source without its key. */
export function refuseUnconnected(kind: DocumentKind | undefined, sources: PdfSources): void {
  const keys: Record<DocumentKind, [key: string, isConnected: boolean]> = {
    payments: ['STRIPE_API_KEY', sources.payments !== null],
    ix: ['INVOICEXPRESS_API_KEY', sources.documents !== null],
  }
  for (const wanted of kind === undefined ? documentKinds : [kind]) {
    const [key, isConnected] = keys[wanted]
    const other = wanted === 'ix' ? 'payments' : 'ix'
    if (!isConnected)
      throw new CliError(
        `${key} is not set, and the ${wanted} PDFs come from there. Set it${kind === undefined ? `, or fetch only the others with --kind ${other}` : ''}.`,
      )
  }
}

export async function runPdfExport(
  store: OperatorStore,
  { walk, zone }: ExportScope,
  { folder, kind, format, sources, write, signal }: PdfOptions,
  progress: Progress,
): Promise<PdfCounts> {
  let failures = 0
  const counts = await exportPdfs(store.walkInvoices({ ...walk, withLines: false }), {
    folder,
    kinds: kind === undefined ? documentKinds : [kind],
    save: createPdfSaver(folder, sources, signal),
    index: createCsvWriter(format, { columns: indexColumns, writeMoment: zone.writeMoment, write }),
    onProgress: (pdfs, part) => progress.update('there', pdfs, part),
    onFailure(pdf) {
      if (++failures <= shownFailures) progress.print(describeFailure(pdf))
    },
  })
  if (failures > shownFailures) progress.print(`… and ${failures - shownFailures} more.`)
  return counts
}

function describeFailure({ invoice, kind, detail }: SavedPdf): string {
  return printable(`Failed: the ${kind} PDF of ${invoice.number ?? ''} ${invoice.id}: ${detail}`)
}

export async function prepareFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return join(folder, indexName)
}

export function describeCounts({ saved, kept, none, failed }: PdfCounts, folder: string): string {
  const parts = [
    `${saved} saved`,
    `${kept} there already`,
    `${none} not issued`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
  ]
  return `PDFs in ${folder}: ${parts.join(', ')}; ${indexName} lists them all`
}
