/** Each step of a list that is read in ranges: when it is cut, where it goes on, what is left, and how much is done. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ListedPage, ListPlan, RangePass } from '../../src/sync/invoices/list-plan.ts'
import { type Range, wholeList } from '../../src/sync/invoices/ranges.ts'

const answer = (id: string) => ({ id, customer_id: null, found: null })

function page(more: Partial<ListedPage> = {}): ListedPage {
  return { answers: [], unfit: [], next: 'in_1', began: 0, reached: 0, askedAt: 1, answeredAt: 2, ...more }
}

function planOf(ranges: readonly Range[], parallel = 4) {
  const plan = new ListPlan(ranges, parallel)
  const pass = plan.takeNext() ?? assert.fail()
  return { plan, pass }
}

const range = (from: number, before: number, isCut = true): Range => ({ from, before, after: null, isCut })

describe('a range of a list', () => {
  it('estimates its remaining pages from the last page, and has no remaining page at its end', () => {
    const pass = new RangePass(range(0, 1_000), 0)
    pass.recordRead(page({ began: 900, reached: 800 }))
    assert.equal(pass.remainingPages(), 8)
    pass.recordRead(page({ next: null, began: 800, reached: 700 }))
    assert.equal(pass.remainingPages(), 0)
    pass.recordRead(page({ next: null, began: 700, reached: 600 }))
  })

  it('fails when its pages form a circle', () => {
    const pass = new RangePass(wholeList, 0)
    pass.recordRead(page())
    assert.throws(() => pass.recordRead(page()), /circle/)
  })

  it('continues before a deleted invoice, step by step back to its beginning', () => {
    const pass = new RangePass(wholeList, 0)
    assert.equal(pass.stepBack(), null)
    const unfit = [{ id: 'in_3', reason: 'odd' }]
    pass.recordRead(page({ answers: ['in_1', 'in_2'].map(answer), unfit, next: 'in_2' }))
    assert.equal(pass.stepBack(), 'in_3')
    assert.throws(() => pass.recordRead(page({ next: 'in_2' })), /circle/)
    assert.equal(pass.stepBack(), 'in_1')
    assert.equal(pass.stepBack(), null)
    pass.recordRead(page({ answers: [answer('in_2')], next: 'in_2' }))
    assert.equal(pass.stepBack(), null)
  })

  it('can still step back after its last page', () => {
    const pass = new RangePass(wholeList, 0)
    pass.recordRead(page({ answers: ['in_1', 'in_2'].map(answer), next: 'in_2' }))
    pass.recordRead(page({ answers: [answer('in_9')], next: null }))
    assert.equal(pass.stepBack(), 'in_1')
  })
})

describe('the division of a list into ranges', () => {
  const pageAt = (place: number, next: string | null = `in_${place}`) =>
    page({ next, began: 1_700_000_000 - place * 100, reached: 1_700_000_000 - place * 100 - 100 })

  it('happens after three pages, and the newest range is as long as these pages', () => {
    const { plan, pass } = planOf([wholeList])
    const counts = [0, 1, 2].map(place => {
      plan.recordRead(pass, pageAt(place))
      return plan.remainingAfter([]).length
    })
    assert.deepEqual(counts.slice(0, 2), [1, 1])
    assert.ok((counts[2] ?? 0) > 5)
    assert.deepEqual(pass.range, { from: 1_700_000_000 - 600, before: null, after: null, isCut: true })
  })

  it('does not happen at the list’s end or for a single reader', () => {
    const { plan, pass } = planOf([wholeList])
    for (const place of [0, 1]) plan.recordRead(pass, pageAt(place))
    plan.recordRead(pass, pageAt(2, null))
    assert.deepEqual(plan.remainingAfter([]), [wholeList])
    const alone = planOf([wholeList], 1)
    for (const place of [0, 1, 2, 3]) alone.plan.recordRead(alone.pass, pageAt(place))
    assert.deepEqual(alone.plan.remainingAfter([]), [wholeList])
  })

  for (const [what, given, reached, count] of [
    ['a period with twelve pages left', range(0, 1_300, false), 1_200, 12],
    ['a period with less than twelve pages left', range(0, 1_300, false), 1_199, 1],
    ['a part of another division with twelve pages left', range(0, 1_300), 1_200, 1],
  ] as const)
    it(`makes ${count === 1 ? 'one range' : `${count} ranges`} of ${what}`, () => {
      const { plan, pass } = planOf([given])
      plan.recordRead(pass, page({ began: reached + 100, reached }))
      assert.equal(plan.remainingAfter([]).length, count)
    })

  it('keeps the next page of a list without a start, even at negative times', () => {
    const { plan, pass } = planOf([wholeList])
    assert.equal(plan.recordRead(pass, page({ reached: -1 })).next, 'in_1')
  })
})

describe('the remaining part of a list', () => {
  const ranges = [range(1_000, 2_000), range(0, 1_000)]

  it('begins after the page that is about to be stored, and is empty at the range’s end', () => {
    const { plan, pass } = planOf(ranges)
    const [newer, older] = ranges as [Range, Range]
    assert.deepEqual(plan.remainingAfter([]), ranges)
    assert.deepEqual(plan.remainingAfter([{ pass, page: page({ next: 'in_7' }) }]), [
      { ...newer, after: 'in_7' },
      older,
    ])
    assert.deepEqual(plan.remainingAfter([{ pass, page: page({ next: null }) }]), [older])
  })

  it('begins after the stored invoices, including invalid invoices', () => {
    const { plan, pass } = planOf(ranges)
    const [newer, older] = ranges as [Range, Range]
    const unfit = [{ id: 'in_3', reason: 'odd' }]
    plan.recordStored([{ pass, page: page({ answers: ['in_1', 'in_2'].map(answer), unfit, next: 'in_3' }) }])
    assert.equal(plan.storedInvoices, 3)
    assert.deepEqual(plan.remainingAfter([]), [{ ...newer, after: 'in_3' }, older])
    assert.deepEqual(pass.range, { ...newer, after: 'in_3' })
    plan.recordStored([{ pass, page: page({ next: null }) }])
    assert.deepEqual([plan.remainingAfter([]), plan.isDone()], [[older], false])
    plan.recordStored([{ pass: plan.takeNext() ?? assert.fail(), page: page({ next: null }) }])
    assert.deepEqual([plan.remainingAfter([]), plan.isDone()], [[], true])
  })
})

describe('the completed share of a list', () => {
  it('is the share of pages, once each range has one read page', () => {
    const { plan, pass } = planOf([range(1_000, 2_000), range(0, 1_000)])
    const other = plan.takeNext() ?? assert.fail()
    assert.equal(plan.estimate(), null)
    plan.recordRead(pass, page({ began: 2_000, reached: 1_900 }))
    assert.equal(plan.estimate(), null)
    plan.recordRead(other, page({ began: 1_000, reached: 900 }))
    assert.equal(plan.estimate(), 2 / (2 + 9 + 9))
  })

  it('is unknown while the list is not divided', () => {
    const { plan, pass } = planOf([wholeList])
    plan.recordRead(pass, page({ began: 2_000, reached: 1_900 }))
    assert.equal(plan.estimate(), null)
  })
})
