/** Histories made at random, in every order that can happen: all end equal to the payment platform. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type Stripe from 'stripe'
import { createAccount, type StripeAccount } from '../../sandbox/stripe/account.ts'
import { type ChangeKind, changeableFrom, changeKinds } from '../../sandbox/stripe/changes.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import type { BillingSource } from '../../src/sources/source.ts'
import { readEvent } from '../../src/sources/stripe/events.ts'
import { createStamps } from '../../src/store/stamps.ts'
import type { Applied } from '../../src/sync/invoices/apply-answers.ts'
import { type Connector, createConnector } from '../../src/sync/invoices/connector.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { engines } from '../support/databases/engines.ts'
import { noGuard } from '../support/worlds/no-guard.ts'
import {
  assertTrue,
  createDirectSource,
  createLog,
  type Delay,
  emptyStore,
  holdSource,
  openStores,
  recently,
  watchStore,
} from '../support/worlds/sync.ts'

/** On SQLite a run takes milliseconds. */
const runs: Record<string, number> = {
  sqlite: campaign(80, 5_000),
  postgres: campaign(30, 500),
  citus: campaign(30, 100),
}

const runKinds = ['backfill', 'catchUp', 'rereadUnsettled', 'relist'] as const

const someStep = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      kind: fc.constantFrom(...changeKinds),
      pick: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rename' as const), pick: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(0, 1, 400) }),
  },
  // Any event at any time: in whatever order, twice, or never.
  { weight: 6, arbitrary: fc.record({ do: fc.constant('webhook' as const), pick: fc.nat(4) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('release' as const), pick: fc.nat(8) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(...runKinds),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
)

const someHistory = fc.record({
  seed: fc.nat(1_000_000),
  // With the many, the list is read in parts.
  invoices: fc.oneof(
    { weight: 30, arbitrary: fc.integer({ min: 1, max: 3 }) },
    { weight: 1, arbitrary: fc.constant(30) },
  ),
  isListed: fc.boolean(),
  steps: fc.array(someStep, { minLength: 8, maxLength: 20, size: 'max' }),
  delays: fc.array(fc.constantFrom<Delay>('none', 'answer', 'question'), {
    minLength: 1,
    maxLength: 12,
  }),
})
type History = typeof someHistory extends fc.Arbitrary<infer T> ? T : never

/**
 * One process: webhooks at any time, and runs of every kind side by side, one of each. Where a run or a webhook waits for
 * an answer, other steps go on. In the end everything is answered, and each kind of run is done once more.
 */
async function runHistory(account: StripeAccount, store: ReturnType<typeof watchStore>, history: History) {
  const counts = { webhooks: 0, overlapped: 0, deleted: 0, restarts: 0 }
  const direct = createDirectSource(account)
  const { log } = createLog()
  const signal = new AbortController().signal
  const common = { store, log, signal, rules: defaultRules, guard: noGuard }
  const connect = async (source: BillingSource) =>
    createConnector({ ...common, source, nextStamp: createStamps(await store.readLastObserved()) })
  const start = async () => {
    const source = holdSource(direct, history.delays)
    return { source, connector: await connect(source) }
  }
  // Three that are young, whatever the account began with: there is something to happen to.
  for (const kind of ['create', 'create', 'create', 'finalize'] as const) account.change(kind)
  if (history.isListed) await (await connect(direct)).backfill()
  let { source, connector } = await start()
  const running = new Map<string, Promise<void>>()
  let webhooks: Promise<void>[] = []
  const count = ({ overlapped, deleted }: Applied) => {
    counts.overlapped += overlapped
    counts.deleted += deleted
  }

  for (const step of history.steps) {
    if (step.do === 'change') change(account, step.kind, step.pick)
    else if (step.do === 'rename') rename(account, step.pick)
    else if (step.do === 'wait') account.clock += step.seconds
    else if (step.do === 'release') source.release(step.pick)
    else if (step.do === 'webhook') {
      const event = account.events.at(-1 - step.pick)
      const notification = event && readEvent(event as unknown as Stripe.Event)
      if (notification) {
        counts.webhooks++
        webhooks.push(connector.applyNotification(notification).then(count))
      }
    } else if (step.do === 'restart') {
      source.abandon()
      await store.settled()
      ;({ source, connector } = await start())
      running.clear()
      webhooks = []
      counts.restarts++
    } else if (!running.has(step.do)) {
      const mine = runOf(connector, step.do).then(count)
      running.set(step.do, mine)
      mine
        .finally(() => {
          if (running.get(step.do) === mine) running.delete(step.do)
        })
        .catch(() => {})
    }
    await turn()
  }
  source.releaseAll()
  await Promise.all([...running.values(), ...webhooks])
  for (const step of ['backfill', 'catchUp', 'rereadUnsettled'] as const) count(await connector[step]())
  return counts
}

function runOf(connector: Connector, kind: (typeof runKinds)[number]): Promise<Applied> {
  return kind === 'relist' ? connector.relist(true) : connector[kind]()
}

/** Whatever waits for nothing but the store gets on. */
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Of those that allow it; nothing when there is none. */
function change(account: StripeAccount, kind: ChangeKind, index: number): void {
  if (kind === 'create') return void account.change(kind)
  const fitting = [...account.invoices.values()].filter(({ status }) => changeableFrom[kind].includes(status))
  const invoice = fitting[index % fitting.length]
  if (invoice !== undefined) account.change(kind, invoice.id)
}

function rename(account: StripeAccount, index: number): void {
  const living = [...account.customers.values()].filter(({ deleted }) => !deleted)
  const customer = living[index % living.length]
  if (customer !== undefined) account.renameCustomer(customer.id, `Firma ${account.events.length}`)
}

for (const engine of engines)
  describe(`random histories on ${engine.name}`, () => {
    test(`${runs[engine.name]} orders of changes, webhooks, late answers and restarts end in the same state, without an older state in between`, async t => {
      const { store, url } = await openStores(t, engine)
      const done = { webhooks: 0, overlapped: 0, deleted: 0, restarts: 0 }
      await fc.assert(
        fc.asyncProperty(someHistory, async history => {
          await emptyStore(url)
          const account = createAccount({
            invoices: history.invoices,
            customers: 2,
            seed: history.seed,
            now: recently(),
          })
          const counts = await runHistory(account, watchStore(store), history)
          for (const name of ['webhooks', 'overlapped', 'deleted', 'restarts'] as const)
            done[name] += counts[name]
          await assertTrue(account, store)
        }),
        { numRuns: runs[engine.name] ?? 0, seed: 2026, endOnFailure: true },
      )
      // How often answers overlap depends on the machine: overlap.test.ts makes them overlap.
      const { overlapped, ...made } = done
      t.diagnostic(`${overlapped} answers overlapped`)
      for (const [name, count] of Object.entries(made))
        assert.ok(count > Number(runs[engine.name]) / 10, `${count} ${name}`)
      reportFigure(t, 'R3', `${engine.name}: ${runs[engine.name]} interleavings end equal`)
    })
  })
