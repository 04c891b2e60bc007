import { once } from 'node:events'
import { Command, Option } from 'commander'
import { isCalendarDay } from '../http/parameters.ts'
import { type InvoiceKey, isCustomerId } from '../invoice.ts'
import type { LinkedInvoice } from '../store/document-store.ts'
import { openWriteStore } from '../store/open-store.ts'
import { StoreError, type Stream, type WriteStore } from '../store/store.ts'
import { allStream, openStream } from '../sync/documents.ts'
import { type Difference, differenceKinds, findDifferences } from '../sync/reconcile.ts'
import { CliError } from './cli-error.ts'
import { readDatabaseUrl, readLinkRules } from './config.ts'
import { addSettings, readFlags } from './options.ts'
import { createProgress, type Progress } from './progress.ts'
import { createLongTable, printable } from './table.ts'

const formats = ['table', 'csv', 'json'] as const
type Format = (typeof formats)[number]

export function reconcileCommand(): Command {
  return addSettings(
    new Command('reconcile')
      .description(
        "List where the payment platform's side of an invoice and its document differ. Reads the store only.",
      )
      .option('--customer <id>', 'only the invoices of this customer, cus_…')
      .option('--from <day>', 'only those issued on this day or later, YYYY-MM-DD in UTC')
      .option('--to <day>', 'only those issued on this day or earlier')
      .addOption(
        new Option('--format <format>', 'table for people; csv; json is one object a line')
          .choices(formats)
          .default('table'),
      ),
    'DATABASE_URL',
    'LINK_IGNORE_ZERO',
    'LINK_IGNORE_BEFORE',
    'LINK_CREATING_TIMEOUT',
  )
    .addHelpText(
      'after',
      `
Kinds: ${differenceKinds.join(', ')}.
Exit code: 0 when there is no difference, 1 when there is one, 2 when it could not be checked.
In csv, a cell that a spreadsheet would take for a formula begins with an apostrophe.`,
    )
    .action(reconcile)
}

interface Scope {
  customer: string | null
  from: string | null
  to: string | null
}

async function reconcile(options: { format: Format } & Record<string, unknown>): Promise<void> {
  try {
    const scope = readScope(options)
    const rules = readLinkRules(true)
    const store = await openWriteStore(readDatabaseUrl(readFlags(options)))
    const progress = createProgress('invoices')
    try {
      await refuseUnread(store, scope, progress)
      const writer = createWriter(options.format, createOutput(progress))
      const counts = new Map<string, number>()
      const now = Date.now()
      let checked = 0
      for await (const linked of readScoped(store, scope)) {
        progress.update('checked', ++checked)
        for (const difference of findDifferences(linked, rules, now)) {
          counts.set(difference.kind, (counts.get(difference.kind) ?? 0) + 1)
          await writer.add(difference)
        }
      }
      await writer.end()
      progress.say(summarize(counts, checked))
      process.exitCode = counts.size === 0 ? 0 : 1
    } finally {
      progress.end()
      await store.close()
    }
  } catch (error) {
    if (error instanceof CliError || error instanceof StoreError)
      throw new CliError(error.message, { exitCode: 2, cause: error })
    // A fault of ours is no difference either.
    process.exitCode = 2
    throw error
  }
}

function readScope(options: Record<string, unknown>): Scope {
  const [customer = null, from = null, to = null] = [options.customer, options.from, options.to] as string[]
  if (customer !== null && !isCustomerId(customer))
    throw new CliError(`--customer must be an ID like cus_PeR0ABnnQ5iOEe, not '${printable(customer)}'.`)
  for (const [name, day] of Object.entries({ '--from': from, '--to': to }))
    if (day !== null && !isCalendarDay(day))
      throw new CliError(`${name} must be a calendar day, written YYYY-MM-DD, not '${printable(day)}'.`)
  if (from !== null && to !== null && from > to)
    throw new CliError(`--from ${from} is after --to ${to}: no day lies between them.`)
  return { customer, from, to }
}

const batchSize = 500

/** In the order of their keys, batch by batch. */
async function* readScoped(store: WriteStore, { customer, from, to }: Scope): AsyncGenerator<LinkedInvoice> {
  let after: InvoiceKey | null = null
  for (;;) {
    const batch: LinkedInvoice[] = await store.readLinked(after, batchSize, customer)
    for (const linked of batch) {
      const day = from === null && to === null ? '' : JSON.parse(linked.summary).issued_at.slice(0, 10)
      if ((from === null || day >= from) && (to === null || day <= to)) yield linked
    }
    if (batch.length < batchSize) return
    after = batch.at(-1) ?? null
  }
}

const day = 24 * 60 * 60 * 1000

/** Before the documents were read to their end, every paid invoice would seem to have none. */
async function refuseUnread(store: WriteStore, scope: Scope, progress: Progress): Promise<void> {
  if (scope.customer !== null && (await store.readLinked(null, 1, scope.customer)).length === 0)
    throw new CliError(
      `There is no invoice of ${scope.customer}. Check the ID, and with fatura status whether its invoices were synchronized.`,
    )
  const streams = new Map((await store.listStreams()).map(stream => [stream.name, stream]))
  if (succeededAt(streams, allStream) === null) {
    let looked = 0
    for await (const { claim } of readScoped(store, scope)) {
      progress.update('looked at', ++looked)
      if (claim !== null)
        throw new CliError(
          'The documents were never read to their end, so nothing can be compared. Run fatura sync with InvoiceXpress connected until fatura status shows a success of ix:all.',
        )
    }
    return
  }
  const last = succeededAt(streams, openStream)
  if (last === null || Date.now() - last > day)
    progress.say(
      `Warning: documents were last looked at ${last === null ? 'nobody knows when' : new Date(last).toISOString()}; what changed since is not seen. Is fatura sync running?`,
    )
}

function succeededAt(streams: ReadonlyMap<string, Stream>, name: string): number | null {
  return streams.get(name)?.succeeded_at ?? null
}

type Write = (text: string) => Promise<void>

/** No faster than it is read, and over no line of progress. */
function createOutput(progress: Progress): Write {
  return async text => {
    progress.end()
    if (!process.stdout.write(text)) await once(process.stdout, 'drain')
  }
}

interface DifferenceWriter {
  add(difference: Difference): Promise<void>
  end(): Promise<void>
}

const noEnd = async () => {}

function createWriter(format: Format, write: Write): DifferenceWriter {
  if (format === 'json')
    return { add: difference => write(`${JSON.stringify(toObject(difference))}\n`), end: noEnd }
  if (format === 'csv') {
    let header = csvRow(csvColumns)
    const flush = async (row: string) => {
      const text = header + row
      header = ''
      await write(text)
    }
    return {
      add: ({ kind, customer_id, id, number, issued_at, detail }) =>
        flush(csvRow([kind, customer_id, id, number ?? '', issued_at, detail])),
      end: () => flush(''),
    }
  }
  const table = createLongTable(['KIND', 'CUSTOMER', 'INVOICE', 'NUMBER', 'ISSUED', 'DETAIL'], write)
  let isEmpty = true
  return {
    add({ kind, customer_id, id, number, issued_at, detail }) {
      isEmpty = false
      const row = [kind, customer_id, id, number ?? '', issued_at.slice(0, 10), detail]
      return table.add(row.map(printable))
    },
    async end() {
      if (!isEmpty) await table.end()
    },
  }
}

const csvColumns = ['kind', 'customer_id', 'invoice_id', 'number', 'issued_at', 'detail']

function toObject({ kind, customer_id, id, number, issued_at, ix_id, detail }: Difference) {
  return { kind, customer_id, invoice_id: id, number, issued_at, ix_id, detail }
}

/** RFC 4180. What a spreadsheet would take for a formula becomes text. */
function csvRow(cells: readonly string[]): string {
  const quoted = cells.map(cell => {
    const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  })
  return `${quoted.join(',')}\r\n`
}

function summarize(counts: ReadonlyMap<string, number>, checked: number): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const invoices = `${checked} ${checked === 1 ? 'invoice' : 'invoices'} checked`
  if (total === 0) return `No differences in ${invoices}.`
  const kinds = differenceKinds.filter(kind => counts.has(kind)).map(kind => `${counts.get(kind)} ${kind}`)
  return `${total} ${total === 1 ? 'difference' : 'differences'} in ${invoices}: ${kinds.join(', ')}.`
}
