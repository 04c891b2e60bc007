/** Compares a month's SAF-T file with the store: its documents, and the invoices that they certify. */
import { dayMs, dayOf } from '../../domain/calendar.ts'
import { copyStatus, printedNumberOf } from '../../domain/document.ts'
import type { Invoice } from '../../domain/invoice.ts'
import type { KnownDocument } from '../../domain/link/known.ts'
import type { LinkRules } from '../../domain/link/link.ts'
import { writeAmount } from '../../domain/money.ts'
import type { DatedDocument } from '../../store/document-store.ts'
import type { OperatorStore } from '../../store/store.ts'
import { readBatches } from '../../sync/concurrency.ts'
import { isNear } from './compare-amounts.ts'
import { comparePair, describe } from './compare-saft.ts'
import type { Limits } from './difference-kinds.ts'
import { findUnlinked } from './read-pairs.ts'
import type { SaftHeader, SaftPart, SaftTotals } from './read-saft.ts'
import { type Difference, sidesOf } from './reconcile.ts'
import { createSaftTables, type Expectation, type SaftTables } from './saft-tables.ts'

export interface SaftComparison {
  store: OperatorStore
  rules: LinkRules
  limits: Limits
  /** Returns the start of a day in the tax authority's time zone, in milliseconds. */
  startOf(day: string): number
  /** Throws when the file belongs to another company or to other days. */
  checkHeader(header: SaftHeader): void
  /** `done` counts the documents or invoices of a step. */
  onProgress(step: string, done: number): void
  /** Called after the whole file was read, with the number of its documents. */
  onRead(documents: number): void
}

/**
 * A document may have another day in the store than in the file. The search in the store covers this much time before and after the file's
 * days.
 */
const marginMs = 31 * dayMs

export async function* compareWithSaft(
  parts: AsyncIterable<SaftPart>,
  comparison: SaftComparison,
): AsyncGenerator<Difference> {
  const tables = createSaftTables()
  try {
    const { days, totals } = await fillFiled(parts, tables, comparison)
    await fillStored(days, tables, comparison)
    tables.match()
    let done = 0
    for (const pair of tables.readPairs()) {
      comparison.onProgress('compared', ++done)
      yield* comparePair(pair, comparison.limits)
    }
    for (const { document, invoice } of tables.readUnfiled())
      yield {
        kind: 'not_in_saft',
        ...sidesOf(invoice, document),
        document_number: printedNumberOf(document),
        detail: `document ${document.id} of ${document.date} is ${document.status}, and not in the file`,
      }
    yield* findPaid(days, tables, comparison)
    for (const { number, times } of tables.readTwice())
      yield describe('number_twice', { document_number: number }, `${times} times in the file`)
    for (const { series, from, to } of tables.readGaps())
      yield describe(
        'numbers_missing',
        { document_number: `${series}/${from}` },
        from === to ? 'missing in its series' : `missing in its series, with all up to ${series}/${to}`,
      )
    for (const each of totals) yield* compareTotals(each)
  } finally {
    tables.close()
  }
}

type Days = Pick<SaftHeader, 'from' | 'to'>

async function fillFiled(
  parts: AsyncIterable<SaftPart>,
  tables: SaftTables,
  { checkHeader, onProgress, onRead }: SaftComparison,
): Promise<{ days: Days; totals: SaftTotals[] }> {
  const totals: SaftTotals[] = []
  let days: Days = { from: '', to: '' }
  let documents = 0
  for await (const part of parts) {
    if (part.kind === 'document') {
      tables.addFiled(part.document)
      onProgress('read from the file', ++documents)
    } else if (part.kind === 'customer') tables.addCustomer(part.id, part.taxId)
    else if (part.kind === 'totals') totals.push(part.totals)
    else {
      checkHeader(part.header)
      days = part.header
    }
  }
  onRead(documents)
  return { days, totals }
}

async function fillStored(days: Days, tables: SaftTables, { store, rules, onProgress }: SaftComparison) {
  const near = { from: dayOf(Date.parse(days.from) - marginMs), to: dayOf(Date.parse(days.to) + marginMs) }
  const read = (after: DatedDocument | null, limit: number) =>
    store.readDated(near, after?.document ?? null, limit)
  let done = 0
  for await (const batch of readBatches(read)) {
    const known = batch.map(({ document, client_tax_id }): KnownDocument => {
      return { id: document.id, document, client_tax_id, misses: 0, observed_stamp: 0 }
    })
    const unlinked = await findUnlinked(store, known, rules)
    for (const { invoices, ...dated } of batch) {
      const links = { invoice: invoices[0] ?? null, unlinked: unlinked.get(dated.document.id) ?? null }
      tables.addStored({ ...dated, ...links }, expect(dated, days))
    }
    done += batch.length
    onProgress('read from the store', done)
  }
}

/** Yields paid invoices of the file's days whose document is missing or belongs to another month's file. */
async function* findPaid(
  days: Days,
  tables: SaftTables,
  { store, startOf, onProgress }: SaftComparison,
): AsyncGenerator<Difference> {
  let done = 0
  const query = {
    customers: null,
    withLines: false,
    status: 'paid',
    issued_from: startOf(days.from),
    issued_before: startOf(dayOf(Date.parse(days.to) + dayMs)),
  } as const
  for await (const batch of store.walkInvoices(query))
    for (const { summary } of batch) {
      onProgress('checked', ++done)
      const invoice = JSON.parse(summary) as Invoice
      const { ix_id, ix_sync_state, total_cents } = invoice
      const needsNone = ix_sync_state === 'ignored' || (ix_id === null && total_cents <= 0)
      // `isExpected` documents are reported as missing from the file, so they are skipped here.
      if (needsNone || (ix_id !== null && (tables.isFiled(ix_id) || tables.isExpected(ix_id)))) continue
      yield {
        kind: 'paid_not_in_saft',
        ...sidesOf(invoice, null),
        document_id: ix_id,
        document_status: invoice.ix_status,
        detail: `paid, and ${ix_id === null ? 'there is no document' : `document ${ix_id} is not of these days`}`,
      }
    }
}

/**
 * Whether the file should contain the document. Documents of MOSS carry the tax of another country, and some files leave such documents
 * out.
 */
function expect({ document, isGone }: Omit<DatedDocument, 'invoices'>, days: Days): Expectation {
  const { type, date, status } = document
  const isWithin = date !== null && date >= days.from && date <= days.to
  if (!isWithin || isGone || status === 'draft' || status === 'deleted') return 'no'
  return type === 'VatMossInvoice' || status === copyStatus ? 'maybe' : 'yes'
}

function* compareTotals({ section, declared, counted }: SaftTotals): Generator<Difference> {
  const wrong = []
  const entries = counted.NumberOfEntries
  if (Number(declared.NumberOfEntries) !== entries)
    wrong.push(`NumberOfEntries is ${declared.NumberOfEntries || 'missing'}, and there are ${entries}`)
  for (const name of ['TotalDebit', 'TotalCredit'] as const) {
    const sum = writeAmount(Number(counted[name] / 10_000n), 'eur')
    if (!isNear(declared[name], sum))
      wrong.push(`${name} is ${declared[name] || 'missing'}, and the lines’ sum ${sum}`)
  }
  if (wrong.length > 0) yield describe('saft_totals_differ', {}, `${section}: ${wrong.join('; ')}`)
}
