/** Each step of a list that is read in ranges: when it is cut, where it goes on, what is left, and how much is done. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ListedPage, ListPlan, Walk } from '../../src/sync/invoices/list-plan.ts'
import { type Range, wholeList } from '../../src/sync/invoices/ranges.ts'

const answer = (id: string) => ({ id, customer_id: null, found: null })

function page(more: Partial<ListedPage> = {}): ListedPage {
  return { answers: [], unfit: [], next: 'in_1', began: 0, reached: 0, askedAt: 1, answeredAt: 2, ...more }
}

function planOf(ranges: readonly Range[], parallel = 4) {
  const plan = new ListPlan(ranges, parallel)
  const walk = plan.takeNext() ?? assert.fail()
  return { plan, walk }
}

const range = (from: number, before: number, isCut = true): Range => ({ from, before, after: null, isCut })

describe('a range that is read', () => {
  it('has as many pages left as its last page fits into it, and none after its end', () => {
    const walk = new Walk(range(0, 1_000), 0)
    walk.noteRead(page({ began: 900, reached: 800 }))
    assert.equal(walk.pagesLeft(), 8)
    walk.noteRead(page({ next: null, began: 800, reached: 700 }))
    assert.equal(walk.pagesLeft(), 0)
    walk.noteRead(page({ next: null, began: 700, reached: 600 }))
  })

  it('fails where its pages lead in a circle', () => {
    const walk = new Walk(wholeList, 0)
    walk.noteRead(page())
    assert.throws(() => walk.noteRead(page()), /circle/)
  })

  it('goes on before an invoice that is gone, page by page until its beginning', () => {
    const walk = new Walk(wholeList, 0)
    assert.equal(walk.stepBack(), null)
    const unfit = [{ id: 'in_3', reason: 'odd' }]
    walk.noteRead(page({ answers: ['in_1', 'in_2'].map(answer), unfit, next: 'in_2' }))
    assert.equal(walk.stepBack(), 'in_3')
    assert.throws(() => walk.noteRead(page({ next: 'in_2' })), /circle/)
    assert.equal(walk.stepBack(), 'in_1')
    assert.equal(walk.stepBack(), null)
    walk.noteRead(page({ answers: [answer('in_2')], next: 'in_2' }))
    assert.equal(walk.stepBack(), null)
  })

  it('keeps where it may step back to after its last page', () => {
    const walk = new Walk(wholeList, 0)
    walk.noteRead(page({ answers: ['in_1', 'in_2'].map(answer), next: 'in_2' }))
    walk.noteRead(page({ answers: [answer('in_9')], next: null }))
    assert.equal(walk.stepBack(), 'in_1')
  })
})

describe('a list is cut', () => {
  const pageAt = (place: number, next: string | null = `in_${place}`) =>
    page({ next, began: 1_700_000_000 - place * 100, reached: 1_700_000_000 - place * 100 - 100 })

  it('after three pages, where its newest period is as long as these', () => {
    const { plan, walk } = planOf([wholeList])
    const counts = [0, 1, 2].map(place => {
      plan.noteRead(walk, pageAt(place))
      return plan.leftAfter([]).length
    })
    assert.deepEqual(counts.slice(0, 2), [1, 1])
    assert.ok((counts[2] ?? 0) > 5)
    assert.deepEqual(walk.range, { from: 1_700_000_000 - 600, before: null, after: null, isCut: true })
  })

  it('not at its end, and not for one reader', () => {
    const { plan, walk } = planOf([wholeList])
    for (const place of [0, 1]) plan.noteRead(walk, pageAt(place))
    plan.noteRead(walk, pageAt(2, null))
    assert.deepEqual(plan.leftAfter([]), [wholeList])
    const alone = planOf([wholeList], 1)
    for (const place of [0, 1, 2, 3]) alone.plan.noteRead(alone.walk, pageAt(place))
    assert.deepEqual(alone.plan.leftAfter([]), [wholeList])
  })

  for (const [what, given, reached, count] of [
    ['twelve pages', range(0, 1_300, false), 1_200, 12],
    ['a little less than twelve pages', range(0, 1_300, false), 1_199, 1],
    ['a part of twelve pages', range(0, 1_300), 1_200, 1],
  ] as const)
    it(`of a period, ${what} that are left are ${count} from then on`, () => {
      const { plan, walk } = planOf([given])
      plan.noteRead(walk, page({ began: reached + 100, reached }))
      assert.equal(plan.leftAfter([]).length, count)
    })

  it('but ends no page of a list without a beginning, whatever its moments are', () => {
    const { plan, walk } = planOf([wholeList])
    assert.equal(plan.noteRead(walk, page({ reached: -1 })).next, 'in_1')
  })
})

describe('what is left', () => {
  const ranges = [range(1_000, 2_000), range(0, 1_000)]

  it('goes on after what is about to be stored, and is nothing of a range that ended', () => {
    const { plan, walk } = planOf(ranges)
    const [newer, older] = ranges as [Range, Range]
    assert.deepEqual(plan.leftAfter([]), ranges)
    assert.deepEqual(plan.leftAfter([{ walk, page: page({ next: 'in_7' }) }]), [
      { ...newer, after: 'in_7' },
      older,
    ])
    assert.deepEqual(plan.leftAfter([{ walk, page: page({ next: null }) }]), [older])
  })

  it('goes on after what is stored; invoices that do not fit count as well', () => {
    const { plan, walk } = planOf(ranges)
    const [newer, older] = ranges as [Range, Range]
    const unfit = [{ id: 'in_3', reason: 'odd' }]
    plan.noteStored([{ walk, page: page({ answers: ['in_1', 'in_2'].map(answer), unfit, next: 'in_3' }) }])
    assert.equal(plan.invoices, 3)
    assert.deepEqual(plan.leftAfter([]), [{ ...newer, after: 'in_3' }, older])
    assert.deepEqual(walk.range, { ...newer, after: 'in_3' })
    plan.noteStored([{ walk, page: page({ next: null }) }])
    assert.deepEqual([plan.leftAfter([]), plan.isDone()], [[older], false])
    plan.noteStored([{ walk: plan.takeNext() ?? assert.fail(), page: page({ next: null }) }])
    assert.deepEqual([plan.leftAfter([]), plan.isDone()], [[], true])
  })
})

describe('the share that is done', () => {
  it('is that of pages, once each range was looked at', () => {
    const { plan, walk } = planOf([range(1_000, 2_000), range(0, 1_000)])
    const other = plan.takeNext() ?? assert.fail()
    assert.equal(plan.estimate(), null)
    plan.noteRead(walk, page({ began: 2_000, reached: 1_900 }))
    assert.equal(plan.estimate(), null)
    plan.noteRead(other, page({ began: 1_000, reached: 900 }))
    assert.equal(plan.estimate(), 2 / (2 + 9 + 9))
  })

  it('is not known of a list that was not cut yet', () => {
    const { plan, walk } = planOf([wholeList])
    plan.noteRead(walk, page({ began: 2_000, reached: 1_900 }))
    assert.equal(plan.estimate(), null)
  })
})
