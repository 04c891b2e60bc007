import { styleText } from 'node:util'
import { Option } from 'commander'
import { dayMs } from '../../domain/calendar.ts'
import { type Column, type ColumnKind, createTextWriter, type RowWriter } from '../../export/columns.ts'
import { createCsvWriter } from '../../export/csv.ts'
import {
  type DifferenceKind,
  differenceKinds,
  saftKinds,
} from '../../operations/reconcile/difference-kinds.ts'
import { readChecked, readInScope, readUnlinked } from '../../operations/reconcile/read-pairs.ts'
import { type Difference, findDifferences, sidesOf } from '../../operations/reconcile/reconcile.ts'
import { describeUnlinked } from '../../operations/reconcile/unlinked.ts'
import { knownSources } from '../../sources/known-sources.ts'
import { documentStreams } from '../../sources/stream-names.ts'
import { openOperatorStore } from '../../store/engines.ts'
import { type OperatorStore, StoreError } from '../../store/store.ts'
import { invoiceXpressOf, linkRulesOf, settingGroups } from '../settings/connections.ts'
import { readWholeFlag } from '../settings/parsers.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createProgress, movingLine, type Progress, writeOutput } from '../terminal/progress.ts'
import { createLongTable, formatParagraph, printable } from '../terminal/table.ts'
import type { ReconcileTask } from './reconcile-saft.ts'
import { type DayFlags, readScope, type Scope } from './reconcile-scope.ts'

const documentNames = documentStreams(knownSources.documents)
const used = ['DATABASE_URL', 'TIME_ZONE', 'SIMPLIFIED_LIMIT', ...settingGroups.link] as const
/** Time zone of the Portuguese tax authority. */
const saftTimeZone = 'Europe/Lisbon'
/** Kinds of differences that are listed only with `--unlinked`. */
const unlinkedKinds: readonly DifferenceKind[] = [
  'document_of_unknown_invoice',
  'document_of_several_invoices',
  'document_without_invoice',
]

const formats = ['table', 'csv', 'csv-pt', 'json'] as const
type Format = (typeof formats)[number]

export const reconcileCommand = () =>
  new SettingsCommand('reconcile')
    .description(
      'List the differences between invoices of the payment platform and their documents, or between both and a SAF-T file. Nothing is changed.',
    )
    .option('--customer <id>', 'only the invoices of this customer, cus_…')
    .option('--month <month>', 'only invoices issued in this month, YYYY-MM')
    .option('--from <day>', 'only invoices issued on this day or later, YYYY-MM-DD')
    .option('--to <day>', 'only invoices issued on this day or earlier, YYYY-MM-DD')
    .option(
      '--timezone <name>',
      'the time zone of --month, --from and --to, for example Europe/Lisbon (default: TIME_ZONE)',
    )
    .option('--unlinked', 'also list valid documents that belong to no invoice')
    .option('--tolerance <cents>', 'maximum difference, in cents per tax rate, that counts as rounding', '1')
    .option('--all', 'also list differences that are only rounding')
    .option(
      '--saft <file>',
      'compare with this SAF-T (PT) file, XML or ZIP (a month, YYYY-MM, fetches its file from InvoiceXpress)',
    )
    .option('--company <tax id>', 'the tax ID of your company (a SAF-T file of another company is refused)')
    .addOption(
      new Option(
        '--format <format>',
        'table (for reading), csv, csv-pt (for Excel in Portuguese) or json (one object per line)',
      )
        .choices(formats)
        .default('table'),
    )
    .option('--json', 'the same as --format json')
    .settings([...used, ...settingGroups.invoiceXpressFiles])
    .notes(`Kinds of differences: ${differenceKinds.join(', ')}.
The last three kinds appear only with --unlinked. Rounding appears only with --all, and does not change the exit code.
With --saft, days are days of Europe/Lisbon, and there are more kinds: ${saftKinds.join(', ')}.
The SAF-T file of a month is due on the 5th of the next month. Check it before: fatura reconcile --saft 2026-10
The exit code is 0 without differences, 1 with differences, and 2 when the check was not possible.
In csv and csv-pt, a cell that a spreadsheet would read as a formula begins with an apostrophe.`)
    .action(reconcile)

interface Flags extends Options, DayFlags {
  format: Format
  tolerance: string
  saft?: string
  company?: string
}

async function reconcile(options: Flags): Promise<void> {
  try {
    process.exitCode = (await compareAll(options)) ? 1 : 0
  } catch (error) {
    if (error instanceof CliError || error instanceof StoreError)
      throw new CliError(error.message, { exitCode: 2, cause: error })
    // Exit code 1 means that differences were found. An unexpected failure must have another code.
    process.exitCode = 2
    throw error
  }
}

/** Writes the differences that the flags ask for. Returns whether any difference was found. */
async function compareAll(options: Flags): Promise<boolean> {
  const { saft } = options
  checkFlags(options)
  const tolerance = readWholeFlag('--tolerance', options.tolerance, 0, 1_000)
  const settings = readSettings(options, used)
  const scope =
    saft === undefined
      ? readScope(options, settings.TIME_ZONE)
      : readScope({ timezone: options.timezone }, saftTimeZone)
  const rules = linkRulesOf(settings, true)
  const store = await openOperatorStore(settings.DATABASE_URL)
  const progress = createProgress(saft === undefined ? 'invoices' : 'records')
  try {
    await refuseUnread(store, scope, progress)
    const tally = { checked: 0, unlinked: 0, rounding: 0, counts: new Map<string, number>() }
    const limits = { tolerance, simplifiedLimit: settings.SIMPLIFIED_LIMIT }
    const task = { store, scope, rules, limits, progress, tally }
    const connect = () => invoiceXpressOf(readSettings(options, settingGroups.invoiceXpressFiles))
    const differences =
      saft === undefined
        ? reconcileInvoices(task)
        : (await import('./reconcile-saft.ts')).reconcileSaft({ ...options, saft }, connect, task)
    await writeWanted(differences, tally, options, scope.zone)
    print(summarize(tally.counts, tally.checked, saft === undefined ? 'invoice' : 'document of the file'))
    printUnlisted(tally, tolerance, options)
    return tally.counts.size > 0
  } finally {
    progress.end()
    await store.close()
  }
}

function checkFlags({ saft, company, customer, from, to }: Flags): void {
  if (saft === undefined && company !== undefined)
    throw new CliError('--company can only be used together with --saft.')
  if (saft !== undefined && (customer ?? from ?? to) !== undefined)
    throw new CliError(
      '--saft cannot be used together with --customer, --from or --to, because the file sets the days.',
    )
}

interface Tally {
  checked: number
  /** Number of documents without an invoice, counted with and without `--unlinked`. */
  unlinked: number
  rounding: number
  /** Number of differences by kind. Only differences that set the exit code to 1 are counted. */
  counts: Map<string, number>
}

/**
 * Writes the differences that the flags ask for. Rounding does not affect the exit code. Documents without an invoice affect the exit code
 * only with `--unlinked`.
 */
async function writeWanted(
  differences: AsyncIterable<Difference>,
  tally: Tally,
  options: Flags,
  zone: Scope['zone'],
): Promise<void> {
  const writer = createWriter(options.json === true ? 'json' : options.format, zone)
  for await (const difference of differences) {
    const { kind } = difference
    const isUnlinked = unlinkedKinds.includes(kind)
    if (isUnlinked) tally.unlinked++
    if (kind === 'rounding') tally.rounding++
    else if (!isUnlinked || options.unlinked) tally.counts.set(kind, (tally.counts.get(kind) ?? 0) + 1)
    const isListed = kind === 'rounding' ? options.all : !isUnlinked || options.unlinked
    if (isListed) await writer.write([difference])
  }
  await writer.end()
}

function printUnlisted({ unlinked, rounding }: Tally, tolerance: number, options: Flags): void {
  if (unlinked > 0 && !options.unlinked)
    print(
      `Also, ${unlinked} ${unlinked === 1 ? 'document in force is' : 'documents in force are'} tied to no invoice: --unlinked lists ${unlinked === 1 ? 'it' : 'them'}.`,
    )
  if (rounding > 0)
    print(
      `Also, ${rounding} ${rounding === 1 ? 'is' : 'are'} rounding of at most ${tolerance} ${tolerance === 1 ? 'cent' : 'cents'} a rate${options.all ? '' : `: --all lists ${rounding === 1 ? 'it' : 'them'}`}.`,
    )
}

async function* reconcileInvoices(task: ReconcileTask): AsyncGenerator<Difference> {
  const { store, scope, rules, limits, progress, tally } = task
  const now = Date.now()
  for await (const { linked, known, claimants } of readChecked(store, scope, rules)) {
    progress.update('checked', ++tally.checked)
    yield* findDifferences(linked, known, rules, knownSources.billing, now, claimants, limits)
  }
  for await (const { document, unlinked } of readUnlinked(store, scope, rules))
    yield describeUnlinked(document, unlinked)
}

/** Throws while the documents were never read completely, because every paid invoice would seem to lack its document. */
async function refuseUnread(store: OperatorStore, scope: Scope, progress: Progress): Promise<void> {
  if (scope.customer !== null && (await store.readLinked(null, 1, scope.customer)).length === 0)
    throw new CliError(
      `The store holds no invoice of ${scope.customer}. Check the ID. "fatura status" shows how far the synchronization is.`,
    )
  const streams = await store.listStreams()
  const succeededAt = (name: string) => streams.find(stream => stream.name === name)?.succeeded_at ?? null
  if (succeededAt(documentNames.all) === null) {
    let seen = 0
    for await (const batch of readInScope(store, scope)) {
      seen += batch.length
      progress.update('looked at', seen)
      if (batch.some(({ claim }) => claim !== null))
        throw new CliError(
          `The documents were never read completely, so nothing can be compared. Run "fatura sync" with ${knownSources.documents.name} connected until "fatura status" shows a success of ${documentNames.all}.`,
        )
    }
    return
  }
  const last = succeededAt(documentNames.open)
  if (last === null || Math.abs(Date.now() - last) > dayMs)
    print(
      `Warning: documents were last read ${last === null ? 'at an unknown time' : new Date(last).toISOString()}. Later changes are missing. Check that "fatura sync" is running.`,
    )
}

function print(text: string): void {
  movingLine.print(formatParagraph(text))
}

const kinds: Partial<Record<keyof Difference, ColumnKind>> = {
  issued_at: 'moment',
  total_cents: 'integer',
  total: 'decimal',
  document_id: 'integer',
  document_total: 'decimal',
}

const names = ['kind', ...Object.keys(sidesOf(null, null)), 'detail'] as (keyof Difference)[]

const columns = names.map((name): Column<Difference> => {
  return { name, kind: kinds[name] ?? 'text', read: difference => difference[name] }
})

/** `zone` is the time zone of days in the table and of moments in `csv-pt`. */
function createWriter(format: Format, zone: Scope['zone']): RowWriter<Difference> {
  switch (format) {
    case 'table':
      return createTableWriter(zone.dayOf)
    case 'csv':
    case 'csv-pt':
      return createCsvWriter(format, { columns, writeMoment: zone.writeMoment, write: writeOutput })
    case 'json':
      return createTextWriter('', row => `${JSON.stringify(row, names)}\n`, writeOutput)
  }
}

function createTableWriter(dayOf: (moment: number) => string): RowWriter<Difference> {
  const header = ['KIND', 'CUSTOMER', 'INVOICE', 'NUMBER', 'ISSUED', 'DETAIL']
  const table = createLongTable(header, writeOutput, (text, column, row) => {
    if (row === header) return styleText('gray', text)
    return column === 0 ? styleText('yellow', text) : text
  })
  return {
    async write(rows) {
      for (const { kind, customer_id, invoice_id, number, issued_at, detail } of rows) {
        const day = issued_at === null ? '' : dayOf(Date.parse(issued_at))
        await table.add([kind, customer_id ?? '', invoice_id ?? '', number ?? '', day, detail].map(printable))
      }
    },
    end: table.end,
  }
}

/** `what` names the checked thing in singular, for example "invoice". */
function summarize(counts: ReadonlyMap<string, number>, checked: number, what: string): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const all = `${checked} ${checked === 1 ? what : what.replace(/^\w+/, '$&s')} checked`
  if (total === 0) return `No differences in ${all}.`
  const kinds = [...differenceKinds, ...saftKinds]
    .filter(kind => counts.has(kind))
    .map(kind => `${counts.get(kind)} ${kind}`)
  return `${total} ${total === 1 ? 'difference' : 'differences'} in ${all}: ${kinds.join(', ')}.`
}
