/** A month's SAF-T file, which the tax authority gets, against the store: its documents, and the invoices that they certify. */
import { dayMs, dayOf } from '../calendar.ts'
import { printedNumberOf } from '../document.ts'
import type { Invoice } from '../invoice.ts'
import type { LinkRules } from '../linking/link.ts'
import { writeAmount } from '../money.ts'
import type { SourceIdentity } from '../sources.ts'
import type { DatedDocument } from '../store/document-store.ts'
import type { OperatorStore } from '../store/store.ts'
import { readBatches } from '../sync/concurrency.ts'
import { isNear } from './compare-amounts.ts'
import { comparePair, describe, sidesOf } from './compare-saft.ts'
import { findGaps, findTwice, matchDocuments, type Stored, type StoredSide } from './match-saft.ts'
import { findUnlinked } from './read-pairs.ts'
import type { SaftDocument, SaftHeader, SaftPart, SaftTotals } from './read-saft.ts'
import type { Difference } from './reconcile.ts'

export interface SaftComparison {
  store: OperatorStore
  rules: LinkRules
  platform: SourceIdentity
  /** Beginning of a day in the tax authority's time zone, in milliseconds. */
  startOf(day: string): number
  /** Throws when the file is not the wanted one. */
  checkHeader(header: SaftHeader): void
  /** `done` counts documents, or invoices, of a step. */
  onProgress(step: string, done: number): void
  /** Called once the file was read to its end, with the number of its documents. */
  onRead(documents: number): void
}

/** Documents that carry another day in the store may lie so far outside of the file's days. */
const marginMs = 31 * dayMs
const batchSize = 500

export async function* compareWithSaft(
  parts: AsyncIterable<SaftPart>,
  comparison: SaftComparison,
): AsyncGenerator<Difference> {
  const { days, filed, taxIds, totals } = await readFiled(parts, comparison)
  const stored = await readStored(days, comparison)
  const matched = matchDocuments(filed, stored.values())
  let done = 0
  for (const [document, found] of matched) {
    comparison.onProgress('compared', ++done)
    const taxId = taxIds.get(document.customer) ?? null
    const side: StoredSide | null = found && JSON.parse(found.side)
    yield* comparePair({ filed: document, taxId, stored: side }, comparison)
  }
  for (const found of matched.values()) if (found !== null) stored.delete(found.id)
  const unfiled = [...stored.values()].filter(({ isExpected }) => isExpected).sort((a, b) => a.id - b.id)
  for (const { side } of unfiled) {
    const { document, invoice }: StoredSide = JSON.parse(side)
    yield {
      kind: 'not_in_saft',
      ...sidesOf(invoice, document),
      document_number: printedNumberOf(document),
      detail: `document ${document.id} of ${document.date} is ${document.status}, and not in the file`,
    }
  }
  // One that the file should have is listed as such.
  const named = new Set([...matched.values(), ...unfiled].map(each => each?.id))
  yield* findPaid(days, named, comparison)
  for (const { number, times } of findTwice(filed))
    yield describe('number_twice', { document_number: number }, `${times} times in the file`)
  for (const { series, from, to } of findGaps(filed))
    yield describe(
      'numbers_missing',
      { document_number: `${series}/${from}` },
      from === to ? 'missing in its series' : `missing in its series, with all up to ${series}/${to}`,
    )
  for (const each of totals) yield* compareTotals(each)
}

interface Days {
  from: string
  to: string
}

async function readFiled(
  parts: AsyncIterable<SaftPart>,
  { checkHeader, onProgress, onRead }: SaftComparison,
): Promise<{ days: Days; filed: SaftDocument[]; taxIds: Map<string, string>; totals: SaftTotals[] }> {
  const filed: SaftDocument[] = []
  const taxIds = new Map<string, string>()
  const totals: SaftTotals[] = []
  let days: Days = { from: '', to: '' }
  for await (const part of parts) {
    // Copied: a text that was cut out of the file keeps all of it in memory.
    if (part.kind === 'document')
      onProgress('read from the file', filed.push(JSON.parse(JSON.stringify(part.document))))
    else if (part.kind === 'customer') taxIds.set(part.id, part.taxId)
    else if (part.kind === 'totals') totals.push(part.totals)
    else {
      checkHeader(part.header)
      days = part.header
    }
  }
  onRead(filed.length)
  return { days, filed, taxIds, totals }
}

async function readStored(
  days: Days,
  { store, rules, onProgress }: SaftComparison,
): Promise<Map<number, Stored>> {
  const stored = new Map<number, Stored>()
  const near = { from: dayOf(Date.parse(days.from) - marginMs), to: dayOf(Date.parse(days.to) + marginMs) }
  const read = (after: DatedDocument | null) => store.readDated(near, after?.document ?? null, batchSize)
  for await (const batch of readBatches(batchSize, read)) {
    const documents = batch.map(({ document }) => document)
    const isUnlinked = await findUnlinked(store, documents, rules)
    for (const { invoices, document, ...dated } of batch) {
      const { id, type, atcud = null, series_number = null, date, status } = document
      const isWithin = date !== null && date >= days.from && date <= days.to
      const isIssued = status !== 'draft' && status !== 'deleted' && !dated.isGone
      const links = { invoice: invoices[0] ?? null, isUnlinked: isUnlinked(document) }
      const side = JSON.stringify({ ...dated, document, ...links } satisfies StoredSide)
      stored.set(id, { id, type, atcud, series_number, isExpected: isWithin && isIssued, side })
    }
    onProgress('read from the store', stored.size)
  }
  return stored
}

/** Invoices of these days that are paid, and whose document is in another month's file or in none. */
async function* findPaid(
  days: Days,
  named: ReadonlySet<number | null | undefined>,
  { store, startOf, onProgress }: SaftComparison,
): AsyncGenerator<Difference> {
  let done = 0
  const walk = {
    customers: null,
    withLines: false,
    status: 'paid',
    issued_from: startOf(days.from),
    issued_before: startOf(dayOf(Date.parse(days.to) + dayMs)),
  } as const
  for await (const batch of store.walkInvoices(walk))
    for (const { summary } of batch) {
      onProgress('checked', ++done)
      const invoice = JSON.parse(summary) as Invoice
      const { ix_id, ix_sync_state } = invoice
      if (ix_sync_state === 'ignored' || (ix_id !== null && named.has(ix_id))) continue
      yield {
        kind: 'paid_not_in_saft',
        ...sidesOf(invoice, null),
        document_id: ix_id,
        document_status: invoice.ix_status,
        detail: `paid, and ${ix_id === null ? 'there is no document' : `document ${ix_id} is not of these days`}`,
      }
    }
}

function* compareTotals({ section, declared, counted }: SaftTotals): Generator<Difference> {
  const wrong = []
  if (Number(declared.NumberOfEntries) !== counted.entries)
    wrong.push(
      `NumberOfEntries is ${declared.NumberOfEntries || 'missing'}, and there are ${counted.entries}`,
    )
  for (const [name, amount] of [
    ['TotalDebit', counted.debit],
    ['TotalCredit', counted.credit],
  ] as const) {
    const sum = writeAmount(Number(amount / 10_000n), 'eur')
    if (!isNear(declared[name], sum))
      wrong.push(`${name} is ${declared[name] || 'missing'}, and the lines’ sum ${sum}`)
  }
  if (wrong.length > 0) yield describe('saft_totals_differ', {}, `${section}: ${wrong.join('; ')}`)
}
