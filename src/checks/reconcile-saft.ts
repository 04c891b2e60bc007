/** A month's SAF-T file, which the tax authority gets, against the store: its documents, and the invoices that they certify. */
import { dayMs, dayOf } from '../calendar.ts'
import { isInForce, printedNumberOf } from '../document.ts'
import { currencyOf } from '../document-json.ts'
import type { Invoice } from '../invoice.ts'
import { invoiceIdOf, isSameTaxId, type LinkRules } from '../linking/link.ts'
import { writeAmount } from '../money.ts'
import type { SourceIdentity } from '../sources.ts'
import type { OperatorStore } from '../store/store.ts'
import { isSameAmount, toMillionths } from './compare-amounts.ts'
import type { SaftDocument, SaftHeader, SaftPart, SaftTotals } from './read-saft.ts'
import {
  type Difference,
  type DifferenceKind,
  describeUnlinked,
  documentSide,
  invoiceSide,
} from './reconcile.ts'
import {
  bareAtcud,
  createSaftTables,
  type Pair,
  type SaftTables,
  type StoredSide,
  withoutCode,
} from './saft-tables.ts'

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
  const tables = createSaftTables()
  try {
    const { days, totals } = await fillFiled(parts, tables, comparison)
    await fillStored(days, tables, comparison)
    tables.match()
    let done = 0
    for (const pair of tables.readPairs()) {
      comparison.onProgress('compared', ++done)
      yield* comparePair(pair, comparison)
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

interface Days {
  from: string
  to: string
}

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
  let after: Parameters<OperatorStore['readDated']>[1] = null
  for (let done = 0; ; onProgress('read from the store', done)) {
    const batch = await store.readDated(near, after, batchSize)
    const referenced = batch.flatMap(({ document }) => invoiceIdOf(document.reference, rules) ?? [])
    const tied = await store.findTied({
      documents: batch.map(({ document }) => document.id),
      invoices: referenced,
    })
    const [documents, invoices] = [new Set(tied.documents), new Set<string | null>(tied.invoices)]
    for (const {
      invoices: [invoice = null],
      ...dated
    } of batch) {
      const { id, date, status, reference } = dated.document
      const isUnlinked = !documents.has(id) && !invoices.has(invoiceIdOf(reference, rules))
      const isWithin = date !== null && date >= days.from && date <= days.to
      const isIssued = status !== 'draft' && status !== 'deleted' && !dated.isGone
      tables.addStored({ ...dated, invoice, isUnlinked }, isWithin && isIssued)
    }
    done += batch.length
    if (batch.length < batchSize) return
    after = batch.at(-1)?.document ?? null
  }
}

function* comparePair(pair: Pair, comparison: SaftComparison): Generator<Difference> {
  const { filed, stored } = pair
  if (stored === null) {
    const detail = `${nameOf(filed)} of ${filed.date} is in the file, and not in the store`
    return yield describe('not_in_store', filedSide(filed), detail)
  }
  const { document, invoice, isGone } = stored
  const sides = { ...sidesOf(invoice, document), document_number: filed.number }
  const add = (kind: DifferenceKind, detail: string | null) =>
    detail === null ? [] : [{ kind, ...sides, detail } satisfies Difference]
  const status = isGone ? 'deleted' : document.status
  const isCanceled = filed.status === 'A'
  if (isCanceled !== (status === 'canceled' || status === 'deleted'))
    yield* add(
      'canceled_in_one',
      `${isCanceled ? 'canceled' : 'in force'} in the file, ${status} in the store`,
    )
  yield* add('number_differs', compareNumbers(filed, stored))
  if (filed.date !== document.date)
    yield* add('date_differs', `${filed.date} in the file, ${document.date ?? 'none'} on the document`)
  if (isCanceled || !isInForce(document)) return
  yield* add('total_differs', compareAmounts(filed, stored, comparison.platform))
  yield* add('tax_id_differs', compareTaxIds(pair.taxId, stored, comparison.platform))
  if (invoice?.status === 'void') yield* add('document_on_void', 'void, but in force in the file')
  if (stored.isUnlinked)
    yield { ...describeUnlinked(document, comparison.rules), document_number: filed.number }
}

function compareNumbers(filed: SaftDocument, { document }: StoredSide): string | null {
  const { series_number = null, atcud = null } = document
  const isSameNumber = series_number === null || withoutCode(series_number) === withoutCode(filed.number)
  const isSameAtcud = atcud === null || filed.atcud === null || bareAtcud(atcud) === bareAtcud(filed.atcud)
  if (isSameNumber && isSameAtcud) return null
  const printed = nameOf({ number: printedNumberOf(document) ?? 'no number', atcud })
  return `${nameOf(filed)} in the file, ${printed} on the document`
}

/** Of the file, the document and the invoice: all must be less than a smallest unit apart. */
function compareAmounts(
  filed: SaftDocument,
  { document, invoice }: StoredSide,
  platform: SourceIdentity,
): string | null {
  const { currency, amount } = filed.foreign ?? { currency: 'EUR', amount: filed.gross }
  const code = currency.toLowerCase()
  const isSame =
    (currencyOf(document.currency) ?? code) === code &&
    isNear(amount, document.total) &&
    (invoice === null ||
      (invoice.currency === code && isSameAmount(invoice.total_cents, code, amount) === true))
  const isSameNet =
    filed.foreign !== null || !document.before_taxes || isNear(filed.net, document.before_taxes)
  if (isSame && isSameNet) return null
  const others = isSame
    ? [`${filed.net} before taxes in the file`, `${document.before_taxes} on the document`]
    : [
        `${amount} ${currency} in the file`,
        `${document.total} ${document.currency ?? ''} on the document`.replace('  ', ' '),
        ...(invoice === null
          ? []
          : [
              `${writeAmount(invoice.total_cents, invoice.currency)} ${invoice.currency} at ${platform.name}`,
            ]),
      ]
  return others.join(', ')
}

function isNear(one: string, other: string): boolean {
  const [left, right] = [toMillionths(one), toMillionths(other)]
  if (left === null || right === null) return false
  const apart = left - right
  return apart < 10_000n && apart > -10_000n
}

/** Portugal's number of an unknown customer. */
const anonymous = '999999990'

function compareTaxIds(
  filed: string | null,
  { client_tax_id, invoice }: StoredSide,
  platform: SourceIdentity,
): string | null {
  const known: [taxId: string, where: string][] = []
  if (client_tax_id) known.push([client_tax_id, "of the document's client"])
  if (invoice?.customer_tax_id) known.push([invoice.customer_tax_id, `at ${platform.name}`])
  const own = filed || anonymous
  if (known.every(([taxId]) => isSameTaxId(own, taxId))) return null
  return [`${filed || 'none'} in the file`, ...known.map(([taxId, where]) => `${taxId} ${where}`)].join(', ')
}

/** Invoices of these days that are paid, and whose document is in another month's file or in none. */
async function* findPaid(
  days: Days,
  tables: SaftTables,
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
      // One that the file should have is listed as such.
      if (
        ix_sync_state === 'ignored' ||
        (ix_id !== null && (tables.isFiled(ix_id) || tables.isExpected(ix_id)))
      )
        continue
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
    const sum = writeMillionths(amount)
    if (!isNear(declared[name], sum))
      wrong.push(`${name} is ${declared[name] || 'missing'}, and the lines’ sum ${sum}`)
  }
  if (wrong.length > 0) yield describe('saft_totals_differ', {}, `${section}: ${wrong.join('; ')}`)
}

function writeMillionths(amount: bigint): string {
  const cents = amount / 10_000n
  return writeAmount(Number(cents), 'eur')
}

/** A difference that concerns no stored document. */
function describe(kind: DifferenceKind, side: Partial<Difference>, detail: string): Difference {
  return { kind, ...sidesOf(null, null), ...side, detail }
}

function sidesOf(invoice: Invoice | null, document: Parameters<typeof documentSide>[0]) {
  return { ...invoiceSide(invoice), ...documentSide(document) }
}

function filedSide({ number, status, gross, foreign }: SaftDocument): Partial<Difference> {
  return {
    document_number: number,
    document_status: status,
    document_currency: foreign?.currency ?? 'EUR',
    document_total: foreign?.amount ?? gross,
  }
}

function nameOf({ number, atcud }: { number: string; atcud: string | null }): string {
  return atcud === null ? number : `${number} (ATCUD ${bareAtcud(atcud)})`
}
