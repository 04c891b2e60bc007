/**
 * Dense worlds: accounts in which much is equal, and which end, or are cut, exactly where a limit lies. What goes wrong at a second, a
 * page or a batch happens here often, and in other worlds by luck.
 */
import { integer, pick } from '../../sandbox/random.ts'
import { dayMs } from '../../src/domain/calendar.ts'
import type { InvoiceStatus } from '../../src/domain/invoice.ts'
import { customers, type PageSizes, type Upstreams } from './upstreams.ts'

export interface Density {
  pageSizes: PageSizes
  /** Before the first synchronization. */
  invoices: number
  documents: number
  /** Single documents and clients fetched in one run. */
  fetchesPerRun: number
}

/** Drafts or documents that may disappear within an hour. */
const lossesFreely = 20
/** In seconds: a list is cut as if it began here. */
const earliest = 1_300_000_000
/** Events are kept for 30 days; from two days before, they count as gone. */
const keptDays = [28, 30]

const around = ({ random }: Upstreams, limit: number): number => limit + pick(random, [-1, 0, 0, 1])

export function drawDensity(model: Upstreams, hasDocuments: boolean): Density {
  const { random } = model
  const page = pick(random, [3, 4, 5])
  const [invoices, perPage] = model.draw<[number, number]>([
    [5, around(model, page * integer(random, 14, 24)), page],
    [2, around(model, 100), 6],
    [0.5, around(model, 200), 10],
    [0.15, around(model, 500), 25],
  ])
  const [fetchesPerRun, documents] = model.draw<[number, number]>([
    [5, page, around(model, page * integer(random, 1, 4))],
    [3, 2 * lossesFreely, around(model, lossesFreely + 2)],
    [0.3, 200, around(model, 200)],
  ])
  return {
    pageSizes: { invoices: perPage, documents: documents > 100 ? 30 : page, events: 4 * page },
    ...{ invoices, documents: hasDocuments ? documents : 0, fetchesPerRun },
  }
}

/** What was there before the first synchronization, longer ago than events are read again. */
export function populateDensely(model: Upstreams, density: Density, nowMs: number): void {
  const { random } = model
  const newest = Math.floor(nowMs / 1_000) - 600
  const statuses = pick<readonly InvoiceStatus[]>(random, [
    ['draft', 'open', 'paid', 'void'],
    ['paid'],
    ['open', 'open', 'paid'],
    ['draft', 'draft', 'draft', 'open'],
  ])
  const seconds = drawSeconds(model, density, newest).sort((a, b) => a - b)
  const ids = seconds.map(second => model.createInvoice(pick(random, statuses), second * 1_000, false))
  const days = pick(random, [[9], [0, 2, 3, 4], [24, 25]]).map(ago => dayOf(nowMs - ago * dayMs))
  for (let i = 0; i < density.documents; i++) {
    const reference = model.chance(0.9) ? (ids[i % ids.length] ?? null) : null
    const clientId = integer(random, 0, 3)
    model.createDocument({ reference, status: 'final', date: pick(random, days) }, clientId)
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** When the invoices were created: many in one second, or so that pages and ranges end within a second. */
function drawSeconds(
  model: Upstreams,
  { invoices, documents, pageSizes }: Density,
  newest: number,
): number[] {
  const { random } = model
  const perSecond = pick(random, [1, 2, pageSizes.invoices, pageSizes.invoices + 1, 3 * pageSizes.invoices])
  // After three pages of one second the list is cut three seconds before it, and so on.
  const bounds = [3, 9, 21, 45, 93].flatMap(age => [age, age, age - 1, age + 1])
  const [ageOf] = model.draw<[(place: number) => number]>([
    [1, () => 0],
    [4, place => Math.floor(place / perSecond)],
    [4, place => (place < 3 * pageSizes.invoices ? 0 : pick(random, bounds))],
    [1, place => place * 3_600],
  ])
  const seconds = Array.from({ length: invoices }, (_, place) => newest - ageOf(place))
  // Each month back to the oldest invoice is looked through for documents.
  if (documents > 0 || model.chance(0.7)) return seconds
  return [...seconds, ...[0, 0, 0, -1, 1].map(apart => earliest + apart)]
}

/** Milliseconds that pass until events are just kept, or just gone. */
export function drawLongPause(model: Upstreams): number {
  return pick(model.random, keptDays) * dayMs + pick(model.random, [-1_000, 0, 1_000])
}

/** Something that concerns many records at once; the name of it. */
export function changeMany(model: Upstreams): string {
  const [name, run] = model.draw<[string, () => string | number]>(changesOfMany(model))
  return `${name}: ${run()}`
}

function changesOfMany(model: Upstreams): readonly (readonly [number, string, () => string | number])[] {
  const { random } = model
  const [from = '', to = ''] = [pick(random, customers), pick(random, customers)]
  const isUsual = ({ fits, isOdd }: { fits: boolean; isOdd: boolean }) => fits && !isOdd
  const some = <T>(all: readonly T[], most: number) => all.slice(0, most)
  const forAll = <T>(all: readonly T[], change: (one: T) => unknown) => {
    for (const one of all) change(one)
    return all.length
  }
  const drafts = () => model.some(({ status }) => status === 'draft')
  const open = () => model.some(state => state.status === 'open' && isUsual(state))
  return [
    [2, 'merged', () => (from === to ? 'nobody' : model.merge(from, to))],
    [3, 'corrected', () => model.correctTaxId()],
    [
      2,
      'created',
      () => forAll(Array.from({ length: around(model, 12) }), () => model.createInvoice('open')),
    ],
    [2, 'paid', () => forAll(some(open(), 25), one => model.edit(one, { status: 'paid' }, 'invoice.paid'))],
    [1, 'paid in silence', () => forAll(open(), one => model.edit(one, { status: 'paid' }, null))],
    [
      2,
      'edited',
      () =>
        forAll(some(model.some(isUsual).toReversed(), 20), one =>
          model.edit(one, model.drawEdit(), 'invoice.updated'),
        ),
    ],
    [1, 'deleted', () => forAll(some(drafts(), around(model, lossesFreely)), one => model.delete(one))],
    [
      2,
      'documents deleted',
      () =>
        forAll(
          some(
            model.someDocuments(() => true),
            around(model, lossesFreely),
          ),
          one => model.deleteDocument(one),
        ),
    ],
    [
      1,
      'documents settled',
      () =>
        forAll(
          model.someDocuments(({ status }) => status === 'final'),
          one => model.editDocument(one, { status: 'settled' }),
        ),
    ],
  ]
}
