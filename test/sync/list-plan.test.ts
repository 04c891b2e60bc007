/** A list that is read in ranges: nothing is left out, wherever pages end, ranges are cut and processes break off. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { type Arrival, type ListedPage, ListPlan, type RangePass } from '../../src/sync/invoices/list-plan.ts'
import { type Range, wholeList } from '../../src/sync/invoices/ranges.ts'

interface Listed {
  id: string
  created: number
}

const start = 1_700_000_000

/** Pauses between one invoice and the next: many come within one second, as after a monthly run. */
const somePause = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3_000_000 }) },
)

const someReading = fc.record({
  pauses: fc.array(somePause, { minLength: 1, maxLength: 120 }),
  pageSize: fc.integer({ min: 1, max: 4 }),
  parallel: fc.integer({ min: 1, max: 6 }),
  /** Which of the readers goes on, how many pages are stored together, and when a process breaks off. */
  choices: fc.array(fc.nat(1_000), { minLength: 20, maxLength: 60 }),
})
type Reading = typeof someReading extends fc.Arbitrary<infer T> ? T : never

/** The list as a platform pages it: newest first. */
function listOf(pauses: readonly number[]): Listed[] {
  let created = start
  const all = pauses.map((pause, i): Listed => {
    created -= pause
    return { id: `in_${i}`, created }
  })
  return all
}

function pageOf(
  all: readonly Listed[],
  { from, before }: Range,
  after: string | null,
  size: number,
): ListedPage {
  const place = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
  const fitting = all
    .slice(place)
    .filter(({ created }) => created >= (from ?? 0) && created < (before ?? Number.POSITIVE_INFINITY))
  const page = fitting.slice(0, size)
  return {
    answers: page.map(({ id }) => ({ id, customer_id: null, found: null })),
    unfit: [],
    next: fitting.length > size ? (page.at(-1)?.id ?? null) : null,
    began: page[0]?.created ?? 0,
    reached: page.at(-1)?.created ?? 0,
    ...{ askedAt: 1, answeredAt: 2 },
  }
}

/** One process: reads until it is done or breaks off. Returns what is left, as it would be stored. */
function readOnce(
  all: readonly Listed[],
  ranges: readonly Range[],
  stored: Set<string>,
  given: Reading,
  choose: () => number,
) {
  const plan = new ListPlan(ranges, given.parallel)
  const readers: { pass: RangePass; after: string | null; asked: Range }[] = []
  const waiting: Arrival[] = []
  let left = ranges
  const takeMore = () => {
    while (readers.length < given.parallel) {
      const pass = plan.takeNext()
      if (pass === undefined) return
      readers.push({ pass, after: pass.range.after, asked: pass.range })
    }
  }
  const store = () => {
    const some = waiting.splice(0)
    left = plan.remainingAfter(some)
    for (const { page } of some) for (const { id } of page.answers) stored.add(id)
    plan.recordStored(some)
  }
  takeMore()
  while (readers.length > 0) {
    if (choose() < 15) return left
    const [reader] = readers.splice(choose() % readers.length, 1)
    if (reader === undefined) break
    const { pass, after, asked } = reader
    const page = plan.recordRead(pass, pageOf(all, asked, after, given.pageSize))
    waiting.push({ pass, page })
    // The next page is asked for at once, within the range as it is by now; or before the range is cut again.
    if (page.next !== null) readers.push({ pass, after: page.next, asked: pass.range })
    takeMore()
    if (choose() % 3 === 0) store()
  }
  store()
  assert.ok(plan.isDone())
  return left
}

function assertReadWhole(numRuns: number, cutsAtLeast: number): void {
  let cuts = 0
  fc.assert(
    fc.property(someReading, given => {
      const all = listOf(given.pauses)
      const stored = new Set<string>()
      let turn = 0
      const choose = () => given.choices[turn++ % given.choices.length] ?? 0
      let left: readonly Range[] = [wholeList]
      for (let process = 0; left.length > 0; process++) {
        // In the end one is left to finish.
        left = readOnce(all, left, stored, given, process < 5 ? choose : () => 999)
        if (left.length > 1) cuts++
      }
      assert.deepEqual(
        all.filter(({ id }) => !stored.has(id)),
        [],
      )
    }),
    { numRuns, seed: 2026 },
  )
  assert.ok(cuts > cutsAtLeast, `${cuts} lists were cut off in parts`)
}

it('small and large lists are read completely after interruptions at any page', () => assertReadWhole(100, 9))

it('a list of 5,000 invoices is read completely after interruptions', () => assertReadWhole(5_000, 500))

it('a range whose page ends within its last second continues within that second', () => {
  const range = { from: 100, before: 200, after: null, isCut: true }
  const walkOf = () => {
    const plan = new ListPlan([range], 4)
    return { plan, pass: plan.takeNext() ?? assert.fail() }
  }
  const page = (reached: number): ListedPage => ({
    ...pageOf([{ id: 'in_1', created: reached }], wholeList, null, 9),
    ...{ next: 'in_1', began: 150, reached },
  })
  for (const [reached, next] of [
    [101, 'in_1'],
    [100, 'in_1'],
    [99, null],
  ] as const) {
    const { plan, pass } = walkOf()
    assert.equal(plan.recordRead(pass, page(reached)).next, next, `${reached}`)
  }
})
