/** The whole product on an account in which many invoices fall into each second: in the end everything equals both systems. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { createDocuments, type DocumentAccount } from '../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../sandbox/invoicexpress/server.ts'
import { createRandom, pick } from '../../sandbox/random.ts'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import type { CustomerBalance } from '../../src/domain/balance.ts'
import type { ChangeList } from '../../src/domain/change.ts'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import { openWriteStore, useStore } from '../../src/store/engines.ts'
import { campaign } from '../support/checks/campaign.ts'
import { assertDocumentsTrue } from '../support/checks/document-truth.ts'
import {
  createSyncWorld,
  type Receiver,
  type Records,
  readStored,
  type SyncWorld,
  truthOf,
  webhookSecret,
} from '../support/checks/sync-truth.ts'
import { createStoredToken, eventually, get } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'

const invoices = campaign(1_200, 6_000)
/** 12 in a second, in whole seconds. */
const days = invoices / 12 / 86_400
const ixKey = 'ix_canaryKey_0123456789'
const kinds = ['create', 'create', 'finalize', 'pay', 'void', 'uncollectible', 'update', 'delete'] as const

type Ask = (path: string) => Promise<unknown>

interface Running extends SyncWorld {
  documents: DocumentAccount
  program: Receiver
  ask: Ask
}

async function startUp(t: Parameters<Engine['createStore']>[0], engine: Engine): Promise<Running> {
  const url = await engine.createStore(t)
  const world = await createSyncWorld(t, { invoices, days, customers: 50, lines: 2, seed: 41 }, url)
  const documents = createDocuments(world.account, { states: 'ordinary' })
  const ix = await startInvoiceXpressSandbox({ documents, apiKey: ixKey })
  t.after(() => ix.close())
  const token = await createStoredToken(url)
  const connected = { INVOICEXPRESS_API_KEY: ixKey, INVOICEXPRESS_API_BASE: ix.address }
  Object.assign(world.env, connected, quickClock(8))
  const program = await world.receive(['up', '--port', '0', '--rate-limit', 'off'])
  const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
  const ask: Ask = async path => {
    const { status, json, text } = await get(address + path, token)
    assert.equal(status, 200, text)
    return json
  }
  return { ...world, documents, program, ask }
}

/** Each of these steps begins and ends once more. */
async function goRound({ program }: Running, ...steps: string[]): Promise<void> {
  const ended = (step: string) => program.stdout.split(`"step":"${step}"`).length
  const before = steps.map(ended)
  // One of them may have begun before.
  await eventually('everything was read again', () =>
    steps.every((step, i) => ended(step) >= Number(before[i]) + 2),
  )
}

/** The rest of the feed: what became of each invoice in the end, and where the feed ends. */
async function readFeed(ask: Ask, after: string): Promise<{ last: Map<string, string>; next: string }> {
  const last = new Map<string, string>()
  for (let next = after; ; ) {
    const list = (await ask(`/api/v1/changes?limit=1000&after=${next}`)) as ChangeList
    for (const { invoice_id, kind } of list.changes) last.set(invoice_id, kind)
    if (list.changes.length === 0) return { last, next }
    next = list.next
  }
}

const withoutDocument = ({ invoice, lines, payment }: InvoiceRecord) => {
  const { ix_sync_state, ix_id, ix_status, ix_created_at, ...billed } = invoice
  return { billed, lines, payment }
}

async function assertRows(url: string, truth: Records): Promise<void> {
  const { records } = await readStored(url)
  assert.deepEqual([...records.keys()].sort(), [...truth.keys()].sort())
  for (const [id, record] of truth)
    assert.deepEqual(withoutDocument(records.get(id) ?? assert.fail(id)), withoutDocument(record), id)
}

const add = (sums: Map<string, number[]>, key: string, ...more: number[]) =>
  sums.set(
    key,
    more.map((value, i) => value + (sums.get(key)?.[i] ?? 0)),
  )

const written = (sums: Map<string, number[]>) =>
  [...sums].map(([key, sum]) => `${key} ${sum.join(' ')}`).sort()

/** By currency and status, and by currency what is to be paid and what of it is overdue. */
async function assertSums(ask: Ask, customer: string, records: readonly InvoiceRecord[]): Promise<void> {
  const scope = `/api/v1/client/${customer}`
  const [summary, balance] = [await ask(`${scope}/summary`), await ask(`${scope}/balance`)] as [
    {
      currencies: { currency: string; statuses: { status: string; count: number; total_cents: number }[] }[]
    },
    CustomerBalance,
  ]
  const [sums, toPay] = [new Map<string, number[]>(), new Map<string, number[]>()]
  for (const { invoice, payment } of records) {
    const { currency, status, total_cents } = invoice
    add(sums, `${currency} ${status}`, 1, total_cents)
    const { amount_remaining_cents: left = 0, due_date = null } = payment ?? {}
    const isOverdue = due_date !== null && due_date < balance.day
    if (status === 'open' && left > 0) add(toPay, currency, left, 1, isOverdue ? left : 0)
  }
  const shown = summary.currencies.flatMap(({ currency, statuses }) =>
    statuses.map(({ status, count, total_cents }) => `${currency} ${status} ${count} ${total_cents}`),
  )
  assert.deepEqual(shown.sort(), written(sums), customer)
  const owed = balance.currencies.flatMap(({ currency, remaining_cents, count, overdue_cents }) =>
    remaining_cents === 0 ? [] : `${currency} ${remaining_cents} ${count} ${overdue_cents}`,
  )
  assert.deepEqual(owed.sort(), written(toPay), customer)
}

async function assertEverything({ url, account, documents, ask }: Running): Promise<Records> {
  const truth = truthOf(account)
  await assertRows(url, truth)
  await useStore(openWriteStore(url), async store => {
    await assertDocumentsTrue(store, account, documents)
    assert.equal(await store.checkCounts(), 0)
  })
  const byCustomer = Map.groupBy(truth.values(), ({ invoice }) => invoice.customer_id)
  for (const [customer, records] of byCustomer) await assertSums(ask, customer, records)
  return truth
}

/** Half of the changes come by webhooks, in any order and some twice; the other half in the list of events. */
async function changeMuch({ sandbox, account, documents, program }: Running): Promise<void> {
  const random = createRandom(43)
  const change = (count: number) => {
    for (let done = 0; done < count; done++) account.change(pick(random, kinds))
  }
  sandbox.subscribe(program.url, webhookSecret)
  change(100)
  documents.follow()
  await eventually('each webhook is taken', async () => {
    const sent = await sandbox.deliver({ order: 'shuffled', duplicate: 0.2 })
    return sent.every(({ status }) => status === 200)
  })
  change(100)
  documents.follow()
  const settled = [...documents.documents.values()].filter(({ status }) => status === 'settled')
  for (const { id } of settled.slice(0, 5)) documents.change('cancel', id)
}

const secondsOf = (account: StripeAccount) =>
  Map.groupBy(account.invoices.values(), ({ created }) => created).size

for (const engine of engines)
  describe(`an account with many invoices in each second, on ${engine.name}`, () => {
    test('is stored completely by fatura up, which then follows 200 changes', {
      timeout: 600_000,
    }, async t => {
      const running = await startUp(t, engine)
      const { account, ask, program } = running
      assert.ok(secondsOf(account) < invoices / 10)
      for (const step of ['backfill', 'sweepRecent']) await program.waitFor(new RegExp(`"step":"${step}"`))
      const first = await assertEverything(running)
      const { last, next } = await readFeed(ask, '0')
      assert.deepEqual([...last.keys()].sort(), [...first.keys()].sort())

      const before = (await readStored(running.url)).records
      await changeMuch(running)
      await goRound(running, 'catchUp', 'sweepRecent')
      await assertEverything(running)
      const { records } = await readStored(running.url)
      const since = (await readFeed(ask, next)).last
      for (const id of new Set([...before.keys(), ...records.keys()])) {
        if (isDeepStrictEqual(before.get(id), records.get(id))) continue
        assert.ok(since.has(id), `${id} changed, and the feed does not name it`)
        assert.equal(since.get(id) === 'deleted', !records.has(id), id)
      }
      t.diagnostic(`the feed names ${since.size} invoices`)
    })
  })
