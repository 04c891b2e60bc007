/** When the connector does what: by a clock that nobody sets. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { invoiceXpressIdentity } from '../../src/sources/invoicexpress/source-identity.ts'
import { billingStreams, documentStreams } from '../../src/sources/stream-names.ts'
import { stripeIdentity } from '../../src/sources/stripe/source-identity.ts'
import type { Stream, WriteStore } from '../../src/store/store.ts'
import type { DocumentSync } from '../../src/sync/documents/documents.ts'
import { nothingApplied } from '../../src/sync/invoices/apply-answers.ts'
import type { Connector } from '../../src/sync/invoices/connector.ts'
import { documentQuestions, invoiceQuestions } from '../../src/sync/questions.ts'
import { createRounds } from '../../src/sync/rounds.ts'
import { type Clocks, every, remainingSince, runDue, type Step } from '../../src/sync/schedule.ts'
import { relistPages } from '../../src/sync/sync-invoices.ts'

const minute = 60_000
const day = 24 * 60 * minute

interface World {
  clocks: Clocks
  store: WriteStore
  /** What ran, in order. */
  ran: string[]
  /** Lets time pass, and runs whatever becomes due. */
  pass(milliseconds: number, ...rounds: Step[][]): Promise<void>
  /** Lets a stream reach its end. */
  end(name: string): void
  /** Sets the calendar. */
  set(milliseconds: number): void
}

function createWorld(streams: Partial<Stream>[] = []): World {
  let elapsed = 5_000
  let calendar = Date.UTC(2026, 10, 15)
  const none = { cursor: null, succeeded_at: null, failed_at: null, error: null }
  const store = {
    listStreams: async () => streams.map(stream => ({ ...none, ...stream })),
  } as unknown as WriteStore
  return {
    clocks: { elapsed: () => elapsed, calendar: () => calendar },
    store,
    ran: [],
    async pass(milliseconds, ...rounds) {
      const end = elapsed + milliseconds
      for (;;) {
        let next = end
        for (const steps of rounds) {
          let pause = 0
          while (pause === 0) pause = await runDue(steps)
          next = Math.min(next, elapsed + pause)
        }
        if (elapsed >= end) return
        calendar += next - elapsed
        elapsed = next
      }
    },
    end(name) {
      for (const stream of streams) if (stream.name === name) stream.cursor = null
    },
    set(milliseconds) {
      calendar += milliseconds
    },
  }
}

function followDocuments({ store, clocks, ran }: World): Promise<Step[][]> {
  const documents = {
    source: invoiceXpressIdentity,
    sweepRecent: async () => ({}),
    refreshOpen: async () => ({}),
    sweepMonth: async () => {
      ran.push('sweepMonth')
      return null
    },
  } as unknown as DocumentSync
  return createRounds(documentQuestions(documents), {
    ...{ store, clocks, isListed: async () => true },
    reportStep: step => ran.push(step),
  })
}

function followInvoices(
  { store, clocks, ran, end }: World,
  more: Partial<Connector> = {},
): Promise<Step[][]> {
  const connector = {
    source: stripeIdentity,
    startedAt: 1,
    isListed: async () => true,
    backfill: async () => nothingApplied,
    catchUp: async () => nothingApplied,
    rereadUnsettled: async () => nothingApplied,
    relist: async () => {
      end('stripe:relist')
      return nothingApplied
    },
    retrySetAside: async () => null,
    ...more,
  } as unknown as Connector
  return createRounds(invoiceQuestions(connector), {
    ...{ store, clocks, isListed: connector.isListed },
    reportStep: step => ran.push(step),
  })
}

const count = (ran: readonly string[], step: string) => ran.filter(each => each === step).length

describe('the schedule of the connector’s questions', () => {
  it('has one question for each stream', () => {
    const connector = { source: stripeIdentity } as unknown as Connector
    const documents = { source: invoiceXpressIdentity } as unknown as DocumentSync
    const asked = [...invoiceQuestions(connector), ...documentQuestions(documents)].flatMap(
      ({ stream }) => stream ?? [],
    )
    const known = [billingStreams(stripeIdentity), documentStreams(invoiceXpressIdentity)]
    assert.deepEqual(asked.toSorted(), known.flatMap(streams => Object.values(streams)).toSorted())
  })

  for (const days of [-1, 1, 400])
    it(`stays the same when the clock is changed by ${days} days`, async () => {
      const listed = { name: 'stripe:backfill', succeeded_at: Date.UTC(2026, 10, 15) }
      const [set, unset] = [createWorld([listed]), createWorld([listed])]
      for (const world of [set, unset]) {
        const rounds = [...(await followDocuments(world)), ...(await followInvoices(world))]
        await world.pass(30 * minute, ...rounds)
        if (world === set) set.set(days * day)
        await world.pass(30 * minute, ...rounds)
      }
      assert.deepEqual(set.ran, unset.ran)
      assert.ok(count(set.ran, 'sweepRecent') >= 60)
      assert.ok(count(set.ran, 'refreshOpen') >= 12)
      assert.ok(count(set.ran, 'catchUp') >= 720)
      assert.ok(count(set.ran, 'rereadUnsettled') >= 4)
    })

  it('ignores a stored success in the future', async () => {
    const at = Date.UTC(2026, 10, 15)
    const backfill = { name: 'stripe:backfill', succeeded_at: at }
    const ahead = createWorld([backfill, { name: 'ix:all', succeeded_at: at + 3 * day }])
    await ahead.pass(minute, ...(await followDocuments(ahead)))
    assert.equal(count(ahead.ran, 'sweepMonth'), 1)

    const recent = createWorld([backfill, { name: 'ix:all', succeeded_at: at - 2 * minute }])
    const rounds = await followDocuments(recent)
    await recent.pass(2 * minute, ...rounds)
    assert.equal(count(recent.ran, 'sweepMonth'), 0)
    await recent.pass(2 * minute, ...rounds)
    assert.equal(count(recent.ran, 'sweepMonth'), 1)
    await recent.pass(3 * minute, ...rounds)
    assert.equal(count(recent.ran, 'sweepMonth'), 1, 'five minutes from one beginning to the next')
    await recent.pass(2 * minute, ...rounds)
    assert.equal(count(recent.ran, 'sweepMonth'), 2)
  })

  it('makes sync --once list a part of all invoices again when the list is due before the next run', () => {
    const at = Date.UTC(2026, 10, 15)
    const clocks = { calendar: () => at }
    const hour = 60 * minute
    let source: Parameters<typeof relistPages>[0]['source'] = stripeIdentity
    const pages = (listedAgo: number, ranAgo: number | null, cursor: string | null = null) => {
      const relist = {
        ...{ name: 'stripe:relist', failed_at: null, error: null },
        cursor,
        succeeded_at: at - listedAgo,
      }
      return relistPages({ source }, relist, ranAgo === null ? null : at - ranAgo, clocks)
    }
    assert.equal(pages(0, null), 0, 'the first run')
    assert.equal(pages(0, 30 * day), 0, 'a run that listed everything itself')
    assert.equal(pages(23 * hour, 5 * minute), 0)
    assert.equal(pages(day - 4 * minute, 5 * minute), 600)
    assert.equal(
      pages(5 * minute, 5 * minute, '{"parts":[[null,null,"in_1"]]}'),
      600,
      'one that is under way',
    )
    assert.equal(pages(day - minute, day - minute), 2 * 60 * (24 * 60 - 1), 'once a day')
    assert.equal(pages(3 * day, 1_000), 20, 'a few in any case')
    assert.equal(pages(-day, -day), 20, 'a clock that was set back')
    // However often it runs, within a day.
    for (let every = 1; every <= 24; every++) {
      let age = 0
      while (pages(age * hour, every * hour) === 0) age += every
      assert.ok(age <= 24, `${age} h, every ${every} h`)
    }
    source = { ...stripeIdentity, relistEveryMs: 15 * minute }
    assert.deepEqual([pages(6 * minute, 5 * minute), pages(11 * minute, 5 * minute)], [0, 600])
  })

  it('lists all invoices again after a day, and continues an interrupted list at once', async () => {
    const at = Date.UTC(2026, 10, 15)
    const whole = createWorld([{ name: 'stripe:relist', succeeded_at: at - 12 * 60 * minute }])
    const rounds = await followInvoices(whole)
    await whole.pass(11 * 60 * minute, ...rounds)
    assert.equal(count(whole.ran, 'relist'), 0)
    await whole.pass(2 * 60 * minute, ...rounds)
    assert.equal(count(whole.ran, 'relist'), 1)

    const cut = createWorld([
      { name: 'stripe:relist', succeeded_at: at, cursor: '{"parts":[[null,null,"in_1"]]}' },
    ])
    await cut.pass(minute, ...(await followInvoices(cut)))
    assert.equal(count(cut.ran, 'relist'), 1)
  })

  it('sets a step’s next turn before it runs, so that a failing step delays no other', async () => {
    const { clocks } = createWorld()
    let others = 0
    const fails = every(minute, clocks, async () => {
      throw new Error('no')
    })
    const works = every(minute, clocks, async () => {
      others++
    })
    await assert.rejects(runDue([fails, works]))
    assert.equal(await runDue([fails, works]), 0)
    assert.equal(others, 1)
    assert.equal(await runDue([fails, works]), minute)
  })

  it('reads all unsettled invoices again after a round that failed half-way', async () => {
    const world = createWorld()
    const unlessSince: (number | undefined)[] = []
    const rereadUnsettled = async (since?: number) => {
      unlessSince.push(since)
      if (unlessSince.length === 1) throw new Error('HTTP 500')
      return nothingApplied
    }
    const rounds = await followInvoices(world, { rereadUnsettled })
    await assert.rejects(world.pass(0, ...rounds), /HTTP 500/)
    await world.pass(15 * minute, ...rounds)
    assert.deepEqual(unlessSince, [1, undefined])
  })

  it('asks a failing stream less and less often, and at its usual interval after a success', async () => {
    const world = createWorld([{ name: 'stripe:relist' }])
    let isDown = true
    const relist = async () => {
      world.ran.push('asked')
      if (isDown) throw new Error('HTTP 500')
      return nothingApplied
    }
    const rounds = await followInvoices(world, { relist })
    const fail = (milliseconds: number) => assert.rejects(world.pass(milliseconds, ...rounds), /HTTP 500/)
    await fail(0)
    for (const seconds of [5, 10, 20, 40, 60, 60]) {
      const before = count(world.ran, 'asked')
      await world.pass(seconds * 1_000 - 1, ...rounds)
      assert.equal(count(world.ran, 'asked'), before, `before ${seconds} s`)
      await fail(1)
    }
    isDown = false
    await world.pass(minute, ...rounds)
    assert.equal(count(world.ran, 'relist'), 1)
    await world.pass(day, ...rounds)
    isDown = true
    await fail(day)
    await fail(5_000)
  })

  it('runs a step once in each interval, and first after the given pause', async () => {
    const world = createWorld()
    const step = every(minute, world.clocks, async () => world.ran.push('step'), 10_000)
    await world.pass(9_999, [step])
    assert.deepEqual(world.ran, [])
    await world.pass(1, [step])
    await world.pass(minute - 1, [step])
    assert.deepEqual(world.ran, ['step'])
    await world.pass(1, [step])
    assert.deepEqual(world.ran, ['step', 'step'])
  })

  it('computes the remaining time of a pause', () => {
    const { clocks } = createWorld()
    const now = clocks.calendar()
    assert.equal(remainingSince(null, day, clocks), 0)
    assert.equal(remainingSince(now - day - 1, day, clocks), 0)
    assert.equal(remainingSince(now - minute, day, clocks), day - minute)
    assert.equal(remainingSince(now + 1, day, clocks), 0)
  })
})
