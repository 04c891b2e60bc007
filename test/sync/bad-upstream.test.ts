/** Sync from an upstream that misbehaves in every way: it passes, or it is told; no row is wrong. */
import assert from 'node:assert/strict'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type DocumentFault, documentFaultNames, type Fault, faultNames } from '../../sandbox/faults.ts'
import { createAccount, type StripeAccount } from '../../sandbox/stripe/account.ts'
import { SourceError } from '../../src/sources/source.ts'
import { createBillingSource } from '../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import type { StoredRecord, Stream, WriteStore } from '../../src/store/store.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { assertDocumentsTrue } from '../support/checks/document-truth.ts'
import { createFolder, type Engine, engines } from '../support/databases/engines.ts'
import { startOrdinary } from '../support/worlds/documents.ts'
import { type StoppedClock, stopClock, until } from '../support/worlds/stopped-clock.ts'
import {
  assertNothingFalse,
  assertTrue,
  readAll,
  recently,
  startRig,
  truthOf,
} from '../support/worlds/sync.ts'

const sqlite = engines.find(({ name }) => name === 'sqlite') as Engine

/** What asks on each route, once everything was listed. */
const askers = {
  list_invoices: 'backfill',
  list_lines: 'backfill',
  retrieve_tax_rate: 'backfill',
  list_events: 'catchUp',
  retrieve_invoice: 'rereadUnsettled',
} as const

/** These change the answer, and not every change matters to the caller. No attempt gets past the others. */
const changing: readonly Fault[] = ['huge', 'wrong_type', 'missing_id', 'looping_page']

/** Those that take as long as they are waited for. */
const endless: readonly Fault[] = ['hang', 'slow_body']

const guard = { timeout: 600_000 }

/** How long an answer is waited for: longer than any takes that comes, and shorter than one that comes byte by byte. */
const waitFor = (fault: Fault) => (fault === 'slow_body' ? 5_000 : 120_000)

type Route = keyof typeof askers

/** Brings a connector to a fault, twice: for good, and once. With a clock, which stands still, what hangs is waited for at once. */
async function meet(t: TestContext, route: Route, fault: Fault, listed: Engine, clock: StoppedClock | null) {
  const step = askers[route]
  const waitMs = waitFor(fault)
  const pace = { perSecond: 10_000, attempts: 1, patienceMs: waitMs }
  const timeout = waitMs + 1_000
  const rig = await (step === 'backfill'
    ? startRig(t, sqlite, { account: createAccount(options), pace, timeout })
    : startRig(t, listed, { ...options, pace, timeout }))
  const { account, store, connector, sandbox } = rig
  const stripe = { apiKey: 'sk_test_sandbox', base: sandbox.address, timeoutMs: timeout }
  // One that never ends is asked for again.
  const patient =
    clock === null
      ? connector
      : await rig.connect({ source: createBillingSource(stripe, defaultKeys, { ...pace, attempts: 20 }) })
  const ended = async <T>(work: Promise<T>, hangs = Number.POSITIVE_INFINITY): Promise<T> => {
    const countRequests = () => sandbox.requests.get(route) ?? 0
    if (clock !== null) await passHangs(clock, waitMs + 2_000, work, countRequests, hangs)
    return work
  }
  if (step !== 'backfill')
    for (const kind of ['finalize', 'pay', 'delete', 'update'] as const) account.change(kind)
  const before = await readAll(store)
  assert.equal(before.length > 0, step !== 'backfill')
  const stream = `stripe:${{ backfill: 'backfill', catchUp: 'events', rereadUnsettled: 'unsettled' }[step]}`

  // 64 MB a time: once is enough.
  if (fault !== 'huge') {
    sandbox.faults.set(route, fault, { retryAfter: '0' })
    const failure = await ended(
      connector[step]().then(
        () => null,
        error => error,
      ),
    )
    assert.ok(Number(sandbox.requests.get(route)) > 0)
    if (failure !== null || !changing.includes(fault)) {
      assert.ok(failure instanceof SourceError, String(failure))
      const { failed_at, error } = (await rig.stream(stream)) as Stream
      assert.ok(Number(failed_at) > 0)
      assert.equal(error, failure.message)
    }
    if (!changing.includes(fault) && step === 'catchUp') assert.deepEqual(await readAll(store), before)
    if (step === 'rereadUnsettled') await assertBeforeOrTrue(account, store, before)
    if (step === 'backfill') await assertNothingFalse(account, store)
  }

  sandbox.faults.clear()
  sandbox.faults.set(route, fault, { times: 1, retryAfter: '0' })
  await ended(patient[step](), 1)
  assert.equal((await rig.stream(stream))?.error, null)
  // What did not fit was set aside, and is tried again.
  sandbox.faults.clear()
  await ended(patient.retrySetAside('all'), 0)
  await assertTrue(account, store)
  assert.deepEqual(await store.listSetAside(10, 'stripe', { kind: 'invoice' }), [])
  assert.equal(sandbox.requests.get('redirected'), undefined)
}

/** Lets time pass until the work is done: so much with each request that hangs, else by little. */
async function passHangs(
  clock: StoppedClock,
  hangsMs: number,
  work: Promise<unknown>,
  countRequests: () => number,
  hangs: number,
): Promise<void> {
  let isOver = false
  work.then(
    () => {
      isOver = true
    },
    () => {
      isOver = true
    },
  )
  let seen = countRequests()
  let left = hangs
  await until(async () => {
    const asked = countRequests()
    const isHanging = asked > seen && left > 0
    if (isHanging) left -= asked - seen
    seen = asked
    await clock.pass(isHanging ? hangsMs : 5)
    return isOver
  })
}

const options = { invoices: 110, seed: 14, now: recently() }
const routes = Object.keys(askers) as Route[]

// What an upstream answers is the same to every engine.
test('sync with a failing Stripe', { concurrency: 13 }, async t => {
  const listed = await listOnce(t, createAccount(options))
  reportFigure(t, 'R4', `sync: ${faultNames.length} faults × ${routes.length} calls of Stripe`)
  for (const route of routes)
    for (const fault of faultNames.filter(name => !endless.includes(name)))
      t.test(`${fault} at ${route} is overcome or reported, and no row is wrong`, t =>
        meet(t, route, fault, listed, null),
      )
})

test('sync with a Stripe whose answers never end', guard, async t => {
  const listed = await listOnce(t, createAccount(options))
  for (const route of routes)
    for (const fault of endless)
      await t.test(`${fault} at ${route} is reported after a time-out, and no row is wrong`, guard, t =>
        meet(t, route, fault, listed, stopClock(t)),
      )
})

test('each fault of InvoiceXpress is overcome or reported, and no invoice shows a false state', async t => {
  const faults = campaign<readonly DocumentFault[]>(['garbled', 'endless_pages'], documentFaultNames)
  const routes = ['ix_list', 'ix_document', 'ix_client', 'ix_related'] as const
  // None of those of `npm test` takes as long as it is waited for.
  const ixWaitMs = campaign(60_000, 1_500)
  const rig = await startOrdinary(t, sqlite, { invoices: 60, attempts: 1, ixWaitMs })
  const sync = await rig.reconnect({ missesApartMs: 4 * 60_000 })
  const runs = [() => sync.sweepRecent(), () => sync.refreshOpen(), () => sync.sweepMonth()]
  const readFields = async () =>
    new Map(
      (await readAll(rig.store)).map(({ id, summary }) => {
        const { ix_sync_state, ix_id, ix_status } = JSON.parse(summary)
        // Endless pages have each document again, under ids that are not its own.
        return [id, JSON.stringify([ix_sync_state, ix_id && ix_id % 100_000_000, ix_status])]
      }),
    )
  for (const fault of faults)
    for (const route of routes) {
      for (const kind of ['finalize', 'finalize', 'pay'] as const) rig.account.change(kind)
      rig.documents.follow()
      await rig.connector.catchUp()
      const before = await readFields()
      rig.ix.faults.set(route, fault, { retryAfter: '0' })
      for (const run of runs)
        await run().catch(error => assert.ok(error instanceof SourceError, `${fault} at ${route}: ${error}`))
      const meanwhile = await readFields()
      rig.ix.faults.clear()
      await rig.syncAll()
      await rig.sync.refreshOpen()
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
      const after = await readFields()
      for (const [id, fields] of meanwhile)
        assert.ok(
          [before.get(id), after.get(id)].includes(fields),
          `${fault} at ${route}: ${id} is ${fields}`,
        )
    }
  reportFigure(
    t,
    'R4',
    `${faults.length} faults × ${routes.length} calls of InvoiceXpress: 0 crashes, 0 bad rows`,
  )
})

/** Stores into which all of the account was listed: once, and then copied. */
async function listOnce(t: TestContext, account: StripeAccount): Promise<Engine> {
  const url = await sqlite.createStore(t)
  const { store, connector } = await startRig(t, { ...sqlite, createStore: async () => url }, { account })
  await connector.backfill()
  await assertTrue(account, store)
  const path = join(await createFolder(t), 'listed.db')
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(`VACUUM INTO '${path}'`)
  db.close()
  return {
    ...sqlite,
    async createStore(inner) {
      const copy = join(await createFolder(inner), 'fatura.db')
      await copyFile(path, copy)
      return `sqlite:${copy}`
    },
  }
}

/** Each row is as it was, or as it is by now. */
async function assertBeforeOrTrue(
  account: StripeAccount,
  store: WriteStore,
  before: readonly StoredRecord[],
): Promise<void> {
  const stored = await readAll(store)
  const allowed = new Set([...before, ...truthOf(account, stored)].map(({ id, summary }) => id + summary))
  for (const { id, summary } of stored) assert.ok(allowed.has(id + summary), id)
}
