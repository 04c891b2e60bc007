import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Option } from 'commander'
import { type DocumentKind, documentKinds } from '../../domain/invoice.ts'
import type { Write } from '../../export/columns.ts'
import { createCsvWriter, hasHeader } from '../../export/csv.ts'
import { type ExportFormat, exportFormats, exportInvoices } from '../../export/export-invoices.ts'
import { exportPdfs, indexColumns } from '../../export/export-pdfs.ts'
import { findObstacle } from '../../export/overwriting.ts'
import { openPartFile, type PartFile } from '../../export/part-file.ts'
import { openOperatorStore, storeFileOf } from '../../store/engines.ts'
import type { OperatorStore } from '../../store/store.ts'
import { invoiceXpressOf, settingGroups, stripeOf } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import type { Settings } from '../settings/settings.ts'
import { openPdfSources } from '../start/open-pdf-sources.ts'
import { Interrupted, leave, stopAtSignal, unlessStopped } from '../start/signals.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createProgress, type Progress, writeOutput } from '../terminal/progress.ts'
import { printable } from '../terminal/table.ts'
import { type FilterOptions, filterFlags, readExportScope } from './export-filter.ts'

const used = [
  'DATABASE_URL',
  'TIME_ZONE',
  ...settingGroups.stripe,
  ...settingGroups.invoiceXpressFiles,
] as const

interface ExportFlags extends FilterOptions {
  format: ExportFormat
  lines?: true
  drafts?: true
  output?: string
  force?: true
  pdfs?: string
  kind?: DocumentKind
}

export function exportCommand() {
  const command = new SettingsCommand('export').description(
    'Write invoices to a file, or download their PDFs. The store is not changed.',
  )
  for (const flag of Object.values(filterFlags)) command.addOption(flag)
  return command
    .addOption(
      new Option('--format <format>', 'csv, csv-pt (for Excel in Portuguese), ndjson or parquet')
        .choices(exportFormats)
        .default('csv'),
    )
    .option('--lines', 'one row for each line item instead of one for each invoice')
    .option(
      '--drafts',
      'also write drafts to csv and csv-pt files (ndjson, parquet and --status draft always include them)',
    )
    .option('--output <file>', 'the file to write (default: standard output)')
    .option('--force', 'replace the file if it exists (a database file is never replaced)')
    .option('--pdfs <folder>', 'download the PDFs into this folder instead, with a list of them in index.csv')
    .addOption(
      new Option(
        '--kind <kind>',
        'with --pdfs: only the PDFs of certified documents (ix), or only the PDFs of the payment platform (payments)',
      ).choices(documentKinds),
    )
    .settings(used)
    .notes(`The filters have the same meaning as in the API's list of invoices. All rows show the store at one moment, even while "fatura sync" writes.
The file gets its name when it is complete. Each amount has a column in cents (total_cents) and a decimal column (total). PDFs that are already in the folder are kept, so you can run --pdfs again after a failure.
The exit code is 0 when everything was written. It is 1 when something was not written or a PDF failed.

Examples:
  All invoices of all customers:
    fatura export --output invoices.csv
  A month, for Excel in Portuguese:
    fatura export --month 2026-10 --format csv-pt --output outubro.csv
  One customer's open line items:
    fatura export --customer cus_ana --status open --lines
  For DuckDB, pandas or Spark:
    fatura export --from 2026-01-01 --format parquet --output 2026.parquet
  For programs:
    fatura export --format ndjson | jq -r 'select(.ix_id == null).id'
  The month's PDFs, for the accountant:
    fatura export --month 2026-10 --timezone Europe/Lisbon --pdfs outubro`)
    .action(runExport)
}

interface Task {
  options: ExportFlags
  settings: Pick<Settings, (typeof used)[number]>
  scope: ReturnType<typeof readExportScope>
  progress: Progress
}

async function runExport(options: ExportFlags & Options): Promise<void> {
  refuseMixture(options)
  const settings = readSettings(options, used)
  const scope = readExportScope(options, settings.TIME_ZONE)
  const progress = createProgress(options.pdfs ? 'PDFs' : 'invoices')
  const task = { options, settings, scope, progress }
  try {
    await (options.pdfs === undefined ? writeInvoices(task) : fetchPdfs(task, options.pdfs))
  } finally {
    progress.end()
  }
}

function refuseMixture({ format, output, pdfs, kind, lines }: ExportFlags): void {
  if (pdfs === undefined && kind !== undefined)
    throw new CliError('--kind can only be used together with --pdfs.')
  if (pdfs !== undefined && (output !== undefined || lines !== undefined))
    throw new CliError(
      '--pdfs cannot be used together with --output or --lines, because it writes its own index.csv.',
    )
  if (pdfs !== undefined && format !== 'csv' && format !== 'csv-pt')
    throw new CliError(
      `With --pdfs, --format sets the format of index.csv. It must be csv or csv-pt, not ${format}.`,
    )
  if (format === 'parquet' && output === undefined && process.stdout.isTTY)
    throw new CliError(
      'Parquet cannot be shown on a terminal. Name a file with --output, or pipe the output into a program.',
    )
}

async function writeInvoices(task: Task): Promise<void> {
  const { options, scope, progress } = task
  const { format, output, lines: perLine = false } = options
  if (output !== undefined) await refuseOverwriting(task, output)
  const { invoices, rows } = await withOutput(task, output ?? null, (store, write, signal) =>
    exportInvoices(store, scope.walk, {
      ...{ format, perLine, write, signal },
      withDrafts: options.drafts === true || options.status === 'draft',
      writeMoment: scope.zone.writeMoment,
      dayOf: scope.zone.dayOf,
      onProgress: done => progress.update('exported', done),
    }),
  )
  const what = `${invoices} ${invoices === 1 ? 'invoice' : 'invoices'}${perLine ? ` in ${rows} rows` : ''}`
  progress.print(
    `Exported ${what}${output === undefined ? '' : ` to ${output}`} (${progress.pace(invoices)}).`,
  )
}

/** Throws before anything is read when the file may not be overwritten. `isOwn` recognizes a file that an earlier run wrote. */
async function refuseOverwriting(
  { options, settings }: Task,
  path: string,
  isOwn?: (beginning: string) => boolean,
): Promise<void> {
  const force = options.force === true
  const obstacle = await findObstacle(path, { storeFile: storeFileOf(settings.DATABASE_URL), force, isOwn })
  if (obstacle !== null) throw new CliError(`${path} was not written: ${obstacle}.`)
}

const indexName = 'index.csv'

/** More messages would scroll the summary off the screen. The index lists all failures. */
const shownFailures = 20

async function fetchPdfs(task: Task, folder: string): Promise<void> {
  const { options, settings, scope, progress } = task
  const { kind } = options
  const { payments, documents } = await openPdfSources(stripeOf(settings), invoiceXpressOf(settings))
  const sources = {
    ...(kind !== 'payments' && { ix: documents ?? refuseUnconnected('INVOICEXPRESS_API_KEY', 'ix', kind) }),
    ...(kind !== 'ix' && { payments: payments ?? refuseUnconnected('STRIPE_API_KEY', 'payments', kind) }),
  }
  const indexPath = join(folder, indexName)
  await refuseOverwriting(task, indexPath, beginning => hasHeader(beginning, indexColumns))
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch(error => {
    throw explain(error, folder)
  })
  const format = options.format === 'csv-pt' ? 'csv-pt' : 'csv'
  let failures = 0
  const { saved, kept, none, failed } = await withOutput(task, indexPath, (store, write, signal) =>
    exportPdfs(store.walkInvoices({ ...scope.walk, withLines: false }), {
      ...{ folder, sources, signal },
      index: createCsvWriter(format, { columns: indexColumns, writeMoment: scope.zone.writeMoment, write }),
      onProgress: (pdfs, part) => progress.update('there', pdfs, part),
      onFailure({ invoice: { number, id }, kind, detail }) {
        if (++failures <= shownFailures)
          progress.print(printable(`Failed: the ${kind} PDF of ${number ?? ''} ${id}: ${detail}`))
      },
    }),
  )
  if (failed > shownFailures) progress.print(`… and ${failed - shownFailures} more.`)
  const counts = `${saved} saved, ${kept} already there, ${none} not issued${failed === 0 ? '' : `, ${failed} failed`}`
  progress.print(`PDFs in ${folder}: ${counts}; ${indexName} lists them all (${progress.pace(saved)}).`)
  if (failed > 0)
    throw new CliError(
      `${failed} ${failed === 1 ? 'PDF' : 'PDFs'} failed. Run the same command again. It downloads only the missing PDFs.`,
    )
}

/** Throws an error about the missing setting `key`, before any PDF is fetched. `only` is the value of `--kind`. */
function refuseUnconnected(key: string, kind: DocumentKind, only: DocumentKind | undefined): never {
  const others = kind === 'ix' ? 'payments' : 'ix'
  throw new CliError(
    `${key} is not set, and the ${kind} PDFs need it. Set it${only === undefined ? `, or download only the other PDFs with --kind ${others}` : ''}.`,
  )
}

/**
 * Opens the store and the output for `work`. The output is standard output when `path` is null. After a failure or a signal, an incomplete
 * file is removed.
 */
async function withOutput<T>(
  { settings }: Task,
  path: string | null,
  work: (store: OperatorStore, write: Write, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = path === null ? new AbortController().signal : stopAtSignal()
  const store = await openOperatorStore(settings.DATABASE_URL)
  let file: PartFile | null = null
  try {
    file = path === null ? null : await openPartFile(path)
    const result = await unlessStopped(signal, work(store, file?.write ?? writeOutput, signal))
    await file?.finish()
    await store.close()
    return result
  } catch (error) {
    await file?.discard()
    // The process does not wait for a running read, which may take long after a signal.
    if (error instanceof Interrupted) leave()
    else await store.close()
    throw explain(error, path ?? '')
  }
}

/** Turns an error of the file system into a `CliError` that names the reason. Other errors are returned unchanged. */
function explain(error: unknown, path: string): unknown {
  const { syscall, code, message } = error as NodeJS.ErrnoException
  if (path === '' || syscall === undefined) return error
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such folder',
    ENOTDIR: 'what should be a folder is a file',
    EEXIST: 'what should be a folder is a file',
    EISDIR: 'it is a folder, not a file',
    EACCES: 'this user may not write there',
    EROFS: 'nothing can be written there',
    ENOSPC: 'the disk is full',
  }
  return new CliError(`${path} was not written: ${reasons[code ?? ''] ?? message}.`, { cause: error })
}
