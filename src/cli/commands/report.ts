import { styleText } from 'node:util'
import { Option } from 'commander'
import { dayMs } from '../../domain/calendar.ts'
import { type Column, type ColumnKind, createTextWriter, type RowWriter } from '../../export/columns.ts'
import { createCsvWriter } from '../../export/csv.ts'
import { fillVatReport } from '../../operations/report/read-vat.ts'
import { vatCurrency } from '../../operations/report/vat-amounts.ts'
import { createVatReport, type VatLine } from '../../operations/report/vat-report.ts'
import { knownSources } from '../../sources/known-sources.ts'
import { documentStreams } from '../../sources/stream-names.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import { type OperatorStore, StoreError } from '../../store/store.ts'
import { readWholeFlag } from '../settings/parsers.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createProgress, movingLine, writeOutput } from '../terminal/progress.ts'
import { createLongTable, formatParagraph, printable } from '../terminal/table.ts'
import { readScope } from './reconcile-scope.ts'

const documentNames = documentStreams(knownSources.documents)
const used = ['DATABASE_URL'] as const
/** Time zone of the Portuguese tax authority. */
const defaultTimeZone = 'Europe/Lisbon'

const formats = ['table', 'csv', 'csv-pt', 'json'] as const
type Format = (typeof formats)[number]

export function reportCommand() {
  const vat = new SettingsCommand('vat')
    .description(
      "Print tax base and tax of a month by rate, exemption code and country, for the certified documents and for Stripe's invoices. Nothing is changed.",
    )
    .requiredOption('--month <month>', 'the month, YYYY-MM')
    .option('--timezone <name>', `the time zone of the invoices' days (default: ${defaultTimeZone})`)
    .option('--tolerance <cents>', 'maximum difference, in cents per tax rate, that counts as rounding', '1')
    .option('--all', 'also list differences that are only rounding')
    .addOption(
      new Option(
        '--format <format>',
        'table (for reading), csv, csv-pt (for Excel in Portuguese) or json (one object per line)',
      )
        .choices(formats)
        .default('table'),
    )
    .option('--json', 'the same as --format json')
    .settings(used)
    .notes(`A document counts in the month of its own date. Drafts, canceled documents and receipts do not count.
Credit notes count as negative amounts. Withheld tax does not change base or tax. Amounts are in euros. An invoice without an exchange rate to euros is shown in its own currency.
Each line of csv and json is a row of the report, a total, a difference with its invoice and document, or a record that is not read yet.
Rounding means the same as in "fatura reconcile".
The exit code is 0 when both sides are equal except for rounding. It is 1 when they differ or a record is not read yet, and 2 when there is no report.`)
    .action(reportVat)
  return new SettingsCommand('report').description('Reports for the accountant.').addCommand(vat)
}

interface Flags extends Options {
  month: string
  format: Format
  tolerance: string
  json?: true
  all?: true
}

async function reportVat(options: Flags): Promise<void> {
  try {
    const tolerance = readWholeFlag('--tolerance', options.tolerance, 0, 1_000)
    const { DATABASE_URL: url } = readSettings(options, used)
    const { days, from, to, zone } = readScope(
      { month: options.month, timezone: options.timezone },
      defaultTimeZone,
    )
    if (days === null) throw new Error('a month has days')
    await useStore(openOperatorStore(url), async store => {
      await refuseUnread(store)
      const progress = createProgress('records')
      const report = createVatReport({ tolerance })
      try {
        const read = await fillVatReport(report, {
          ...{ store, days, from, month: options.month },
          ...{ before: to, dayOf: zone.dayOf, onProgress: progress.update },
        })
        const writer = createWriter(options.json === true ? 'json' : options.format)
        await writer.write(report.lines({ withRounding: options.all === true }))
        await writer.end()
        print(summarize(report.counts, read))
      } finally {
        progress.end()
      }
      const { difference, unread } = report.counts
      process.exitCode = difference + unread === 0 ? 0 : 1
    })
  } catch (error) {
    if (error instanceof CliError || error instanceof StoreError)
      throw new CliError(error.message, { exitCode: 2, cause: error })
    // Exit code 1 means that differences were found. An unexpected failure must have another code.
    process.exitCode = 2
    throw error
  }
}

/** Throws while the documents were never read completely, because most of their tax would be missing. */
async function refuseUnread(store: OperatorStore): Promise<void> {
  const streams = await store.listStreams()
  const succeededAt = (name: string) => streams.find(stream => stream.name === name)?.succeeded_at ?? null
  if (succeededAt(documentNames.all) === null)
    throw new CliError(
      `The documents were never read completely, so there is no report. Run "fatura sync" with ${knownSources.documents.name} connected until "fatura status" shows a success of ${documentNames.all}.`,
    )
  const last = succeededAt(documentNames.open)
  if (last === null || Math.abs(Date.now() - last) > dayMs)
    print(
      `Warning: documents were last read ${last === null ? 'at an unknown time' : new Date(last).toISOString()}. Later changes are missing. Check that "fatura sync" is running.`,
    )
}

function print(text: string): void {
  movingLine.print(formatParagraph(text))
}

const kinds: Record<keyof VatLine, ColumnKind> = {
  record: 'text',
  rate_percent: 'number',
  exemption_code: 'text',
  country: 'text',
  currency: 'text',
  documents_base: 'decimal',
  documents_tax: 'decimal',
  stripe_base: 'decimal',
  stripe_tax: 'decimal',
  base_difference: 'decimal',
  tax_difference: 'decimal',
  customer_id: 'text',
  invoice_id: 'text',
  number: 'text',
  document_id: 'integer',
  document_number: 'text',
  document_date: 'text',
  detail: 'text',
}

const names = Object.keys(kinds) as (keyof VatLine)[]
const columns = names.map((name): Column<VatLine> => ({ name, kind: kinds[name], read: line => line[name] }))

function createWriter(format: Format): RowWriter<VatLine> {
  switch (format) {
    case 'table':
      return createTableWriter()
    case 'csv':
    case 'csv-pt':
      return createCsvWriter(format, { columns, writeMoment: moment => moment, write: writeOutput })
    case 'json':
      return createTextWriter('', line => `${JSON.stringify(line, names)}\n`, writeOutput)
  }
}

const rowHeader = ['RATE', 'COUNTRY', 'DOCUMENTS', 'TAX', 'STRIPE', 'TAX', 'DIFF', 'TAX']
const foundHeader = ['RECORD', 'INVOICE', 'DOCUMENT', 'RATE', 'BASE DIFF', 'TAX DIFF', 'DETAIL']

/** Writes two tables. The first has the rates and their totals. The second has the invoices and documents that cause the differences. */
function createTableWriter(): RowWriter<VatLine> {
  const gray = (header: readonly string[]) => (text: string, _column: number, row: readonly string[]) =>
    row === header ? styleText('gray', text) : text
  return {
    async write(lines) {
      const isFound = ({ record }: VatLine) => record !== 'row' && record !== 'total'
      const rows = createLongTable(rowHeader, writeOutput, gray(rowHeader))
      for (const line of lines.filter(line => !isFound(line))) await rows.add(cellsOfRow(line).map(printable))
      await rows.end()
      const found = lines.filter(isFound)
      if (found.length === 0) return
      await writeOutput('\n')
      const table = createLongTable(foundHeader, writeOutput, gray(foundHeader))
      for (const line of found) await table.add(cellsOfFound(line).map(printable))
      await table.end()
    },
    end: async () => undefined,
  }
}

/** Formats a rate, for example "0 % M07". A currency other than the euro is added. */
function rateOf({ record, rate_percent, exemption_code, currency }: VatLine): string {
  const isTotal = record === 'total'
  const rate = isTotal ? 'total' : rate_percent === null ? '?' : `${rate_percent} %`
  const named = isTotal || currency !== vatCurrency ? currency : ''
  return [rate, exemption_code, named].filter(Boolean).join(' ')
}

function cellsOfRow(line: VatLine): string[] {
  const amounts = [line.documents_base, line.documents_tax, line.stripe_base, line.stripe_tax]
  return [
    rateOf(line),
    line.record === 'total' ? '' : (line.country ?? '?'),
    ...[...amounts, line.base_difference, line.tax_difference].map(each => each ?? ''),
  ]
}

function cellsOfFound(line: VatLine): string[] {
  return [
    line.record,
    line.invoice_id ?? '',
    line.document_number ?? (line.document_id === null ? '' : String(line.document_id)),
    line.record === 'unread' ? '' : rateOf(line),
    line.base_difference ?? '',
    line.tax_difference ?? '',
    line.detail ?? '',
  ]
}

function summarize(
  { difference, rounding, unread }: { difference: number; rounding: number; unread: number },
  { documents, invoices, ignored, moss }: Record<'documents' | 'invoices' | 'ignored' | 'moss', number>,
): string {
  const count = (number: number, one: string, many = `${one}s`) => `${number} ${number === 1 ? one : many}`
  const found = [
    difference > 0 && count(difference, 'difference'),
    rounding > 0 && `${rounding} of rounding`,
    unread > 0 && `${unread} unread`,
  ].filter(Boolean)
  const all = `${count(documents, 'document')} and ${count(invoices, 'invoice')}`
  const leftOut = [
    ignored > 0 && ` ${count(ignored, 'ignored invoice is', 'ignored invoices are')} left out.`,
    moss > 0 &&
      ` ${count(moss, 'invoice of MOSS is', 'invoices of MOSS are')} left out, because they are declared separately.`,
  ].filter(Boolean)
  return `${found.length === 0 ? 'No differences' : found.join(', ')} in ${all}.${leftOut.join('')}`
}
