/** Outgoing webhooks: nothing is lost or skipped, the order of an invoice's changes holds, whatever fails or is killed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createPublicKey, verify } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { readCursor } from '../../../src/domain/change.ts'
import { invoiceStatuses } from '../../../src/domain/invoice.ts'
import {
  type DeliverOptions,
  deliverChanges,
  maxAttempts,
  sentAtOnce,
} from '../../../src/export/webhooks/deliver-changes.ts'
import { findUrlProblem, sendWebhook } from '../../../src/export/webhooks/send-webhook.ts'
import { createKeys, publicKeyOf } from '../../../src/export/webhooks/sign-webhook.ts'
import type { OutgoingWebhook } from '../../../src/store/change-store.ts'
import { openWriteStore } from '../../../src/store/engines.ts'
import type { WriteStore } from '../../../src/store/store.ts'
import { campaign } from '../../support/checks/campaign.ts'
import { eventually } from '../../support/clients/cli.ts'
import { compileCache, quickLoading } from '../../support/clients/compile-cache.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { makeRecord } from '../../support/worlds/records.ts'

interface Received {
  type: string
  data: { customer_id: string; invoice_id: string; cursor: string; kind: string }
}

/** Its place in the feed. */
function seqOf({ cursor }: Received['data']): number {
  return readCursor(cursor)?.seq ?? assert.fail(`no cursor: ${cursor}`)
}

const log = pino({ level: 'silent' })
const [sqlite] = engines as [Engine]

async function openStore(t: TestContext, engine: Engine) {
  const url = await engine.createStore(t)
  const store = await openWriteStore(url)
  t.after(() => store.close())
  return { url, store }
}

async function addWebhook(store: WriteStore, fields: Partial<OutgoingWebhook>): Promise<OutgoingWebhook> {
  const webhook: OutgoingWebhook = {
    ...{ id: 'wh_1', url: 'http://127.0.0.1:9/', customers: null, ...createKeys(), cursor: 0 },
    ...{ state: 'active', attempts: 0, next_at: null, error: null, created_at: Date.now(), ...fields },
  }
  await store.addWebhook(webhook)
  return webhook
}

const findWebhook = async (store: WriteStore, id = 'wh_1') =>
  (await store.listWebhooks()).find(each => each.id === id) as OutgoingWebhook

/** Delivers until the condition holds. */
async function deliverUntil(
  options: Omit<DeliverOptions, 'log' | 'signal' | 'allowPrivate'> & { allowPrivate?: boolean },
  isDone: () => Promise<boolean>,
): Promise<void> {
  const stop = new AbortController()
  const delivering = deliverChanges({ allowPrivate: true, ...options, log, signal: stop.signal })
  await eventually('it is delivered', isDone)
  stop.abort()
  await delivering
}

interface Receiver {
  url: string
  requests: { headers: Record<string, string>; body: string }[]
  received(): Received[]
}

/** Answers each request with the next of the statuses, the last one for ever. */
async function receive(t: TestContext, ...statuses: number[]): Promise<Receiver> {
  const requests: Receiver['requests'] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    requests.push({ headers: request.headers as Record<string, string>, body })
    const status = statuses.length > 1 ? statuses.shift() : statuses[0]
    response.writeHead(status ?? 204, { location: 'http://127.0.0.1:9/' }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
  return { url, requests, received: () => requests.map(({ body }) => JSON.parse(body)) }
}

/** Changes of few invoices, many of each. */
async function write(store: WriteStore, transactions: number, each = 5): Promise<number[]> {
  for (let turn = 0; turn < transactions; turn++)
    await store.transaction(tx =>
      tx.saveInvoices(
        Array.from({ length: each }, (_, i) =>
          makeRecord({
            id: `in_${(turn + i) % 7}`,
            customer_id: `cus_${(turn + i) % 7}`,
            status: invoiceStatuses[turn % 5] ?? 'paid',
          }),
        ),
      ),
    )
  const seqs: number[] = []
  for (let after = 0; ; after = seqs.at(-1) ?? 0) {
    const page = await store.readChanges(null, after, 1_000)
    if (page === null || page.changes.length === 0) return seqs
    seqs.push(...page.changes.map(({ seq }) => seq))
  }
}

/** Of each invoice, no change came first after a later one did; returns how many came more than once. */
function assertAllInOrder(received: readonly Received[], wanted: readonly number[]): number {
  const first = new Set<number>()
  const latest = new Map<string, number>()
  for (const { data } of received) {
    if (first.has(seqOf(data))) continue
    first.add(seqOf(data))
    assert.ok(seqOf(data) > (latest.get(data.invoice_id) ?? 0), 'in the order of an invoice’s changes')
    latest.set(data.invoice_id, seqOf(data))
  }
  assert.deepEqual(
    [...first].sort((a, b) => a - b),
    wanted,
    'every change, and no other',
  )
  return received.length - first.size
}

for (const engine of engines)
  describe(`outgoing webhooks on ${engine.name}`, () => {
    it('send small signed messages once, and only for the wanted customers', async t => {
      const { store } = await openStore(t, engine)
      const receiver = await receive(t, 204)
      const webhook = await addWebhook(store, { url: receiver.url, customers: ['cus_1', 'cus_2'] })
      const seqs = await write(store, 6)
      const end = seqs.at(-1)
      await deliverUntil({ store }, async () => (await findWebhook(store)).cursor === end)
      assert.ok(receiver.received().every(({ data }) => ['cus_1', 'cus_2'].includes(data.customer_id)))
      assert.ok(receiver.requests.length >= 6)
      const raw = Buffer.from(publicKeyOf(webhook).slice('whpk_'.length), 'base64').toString('base64url')
      const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw }, format: 'jwk' })
      for (const { headers, body } of receiver.requests) {
        const verified = new Webhook(webhook.secret).verify(body, headers) as Received
        assert.deepEqual(Object.keys(verified), ['type', 'timestamp', 'data'])
        assert.equal(verified.type, `invoice.${verified.data.kind}`)
        assert.equal(headers['webhook-id'], `msg_${verified.data.cursor}`)
        const [, signature = ''] = /v1a,(\S+)/.exec(headers['webhook-signature'] ?? '') ?? []
        const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
        assert.ok(verify(null, Buffer.from(content), publicKey, Buffer.from(signature, 'base64')))
        assert.throws(() => new Webhook(createKeys().secret).verify(body, headers))
      }
      const own = receiver.received().map(({ data }) => seqOf(data))
      assert.equal(
        assertAllInOrder(
          receiver.received(),
          own.toSorted((a, b) => a - b),
        ),
        0,
      )
      // A replay moves the cursor back.
      await store.changeWebhook('wh_1', { state: 'active', cursor: 0 })
      await deliverUntil({ store }, async () => (await findWebhook(store)).cursor === end)
      assert.equal(receiver.requests.length, 2 * own.length)
    })

    it('are retried ten times in three days across restarts, and then disabled without skipping a change', async t => {
      const { store } = await openStore(t, engine)
      const seqs = await write(store, 3)
      const receiver = await receive(t, ...Array(sentAtOnce + maxAttempts).fill(500), 302, 204)
      await addWebhook(store, { url: receiver.url })
      const began = Date.now()
      let clock = began
      const now = () => clock
      for (let attempt = 1; attempt < maxAttempts; attempt++) {
        await deliverUntil({ store, now }, async () => (await findWebhook(store)).attempts === attempt)
        const { state, next_at, error, cursor } = await findWebhook(store)
        assert.deepEqual([state, error, cursor], ['active', 'answered 500', (seqs[0] as number) - 1])
        clock = next_at ?? 0
      }
      const days = (clock - began) / 86_400_000
      assert.ok(days > 3 && days < 3.5, `${days} days`)
      await deliverUntil({ store, now }, async () => (await findWebhook(store)).state === 'disabled')
      assert.equal((await findWebhook(store)).attempts, maxAttempts)
      // A replay goes on where it stopped. A redirect is a failure.
      await store.changeWebhook('wh_1', { state: 'active', cursor: null })
      await deliverUntil({ store, now }, async () => {
        clock = Math.max(clock, (await findWebhook(store)).next_at ?? 0)
        return (await findWebhook(store)).cursor === seqs.at(-1)
      })
      const taken = receiver.received().slice(-seqs.length)
      assert.equal(assertAllInOrder(taken, seqs), 0)
    })
  })

describe('outgoing webhooks', () => {
  it('are disabled by a 410 or when their changes were pruned, and send nothing while paused', async t => {
    const { store } = await openStore(t, sqlite)
    await write(store, 1)
    const gone = await receive(t, 410)
    const paused = await receive(t, 204)
    await addWebhook(store, { url: gone.url })
    await addWebhook(store, { id: 'wh_paused', url: paused.url, state: 'paused' })
    await deliverUntil({ store }, async () => (await findWebhook(store)).state === 'disabled')
    assert.equal((await findWebhook(store)).error, 'answered 410')
    assert.equal(paused.requests.length, 0)
    await store.transaction(tx => tx.pruneChanges(Infinity, 100))
    await store.changeWebhook('wh_paused', { state: 'active', cursor: null })
    await deliverUntil({ store }, async () => (await findWebhook(store, 'wh_paused')).state === 'disabled')
    assert.match((await findWebhook(store, 'wh_paused')).error ?? '', /no longer kept/)
  })

  it('are not delayed by another receiver that hangs or is dead', async t => {
    const { store } = await openStore(t, sqlite)
    const hanging = createServer(() => {}).listen(0, '127.0.0.1')
    await once(hanging, 'listening')
    t.after(() => {
      hanging.closeAllConnections()
      hanging.close()
    })
    const receiver = await receive(t, 204)
    await addWebhook(store, {
      id: 'wh_hangs',
      url: `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`,
    })
    await addWebhook(store, { id: 'wh_dead', url: 'http://127.0.0.1:9/' })
    await addWebhook(store, { url: receiver.url })
    const seqs = await write(store, 20)
    const stop = new AbortController()
    // The clock stands still: no second attempt is ever due.
    const startedAt = Date.now()
    const now = () => startedAt
    const delivering = deliverChanges({ store, allowPrivate: true, log, signal: stop.signal, now })
    await eventually('it is delivered', async () => (await findWebhook(store)).cursor === seqs.at(-1))
    await eventually('the dead one was tried', async () => (await findWebhook(store, 'wh_dead')).attempts > 0)
    assert.equal(assertAllInOrder(receiver.received(), seqs), 0)
    const dead = await findWebhook(store, 'wh_dead')
    assert.deepEqual([dead.attempts, dead.error], [1, 'could not be reached (ECONNREFUSED)'])
    assert.equal((await findWebhook(store, 'wh_hangs')).cursor, 0)
    stop.abort()
    hanging.closeAllConnections()
    await delivering
  })

  it('are sent only with TLS and to public IP addresses, whatever the host name', async () => {
    for (const url of [
      'ftp://x.example/',
      'x',
      'https://a:b@x.example/',
      'http://x.example/',
      'https://127.0.0.1/',
    ])
      assert.notEqual(findUrlProblem(url, false), null, url)
    for (const url of ['https://[::1]/', 'https://10.0.0.1/', 'https://169.254.169.254/latest'])
      assert.match(findUrlProblem(url, false) ?? '', /public/, url)
    assert.equal(findUrlProblem('https://x.example/hooks?a=1', false), null)
    assert.equal(findUrlProblem('http://127.0.0.1:4000/', true), null)
    const answer = await sendWebhook('https://localhost:4000/', {}, '{}', false)
    assert.deepEqual(answer, { status: null, outcome: 'is at an address that is not public' })
  })

  it('send every change when the sender is killed repeatedly at any point', async t => {
    const { store } = await openStore(t, sqlite)
    const kills = campaign(40, 1_000)
    const received: Received[] = []
    await addWebhook(store, {})
    const seqs = await write(store, 2 * kills, 7)
    const end = seqs.at(-1)
    for (let kill = 0; kill < kills; kill++) {
      const { promise: died, resolve: die } = Promise.withResolvers<void>()
      const forever = new Promise<never>(() => {})
      const stop = new AbortController()
      let left = 1 + Math.floor(Math.random() * 60)
      // From the chosen point on, nothing of this life is done any more, nor remembered.
      const point = async () => {
        if (--left <= 0) {
          die()
          await forever
        }
      }
      const mortal =
        <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
        async (...args: Args): Promise<Result> => {
          await point()
          const result = await work(...args)
          await point()
          return result
        }
      const life = deliverChanges({
        ...{ allowPrivate: true, log, signal: stop.signal },
        store: {
          listWebhooks: mortal(store.listWebhooks),
          readChanges: mortal(store.readChanges),
          transaction: mortal(store.transaction) as WriteStore['transaction'],
        },
        send: mortal(async (_url: string, _headers: object, body: string) => {
          received.push(JSON.parse(body))
          return { status: 204, outcome: 'answered 204' }
        }),
      })
      await Promise.race([died, life])
      stop.abort()
    }
    assert.notEqual((await findWebhook(store)).cursor, end, 'each was killed in the midst of it')
    const send: DeliverOptions['send'] = async (_url, _headers, body) => {
      received.push(JSON.parse(body))
      return { status: 204, outcome: 'answered 204' }
    }
    await deliverUntil({ store, send }, async () => (await findWebhook(store)).cursor === end)
    const twice = assertAllInOrder(received, seqs)
    assert.ok(twice <= kills * sentAtOnce, `${twice} twice`)
    t.diagnostic(`${kills} kills, ${seqs.length} changes, 0 lost, ${twice} sent again`)
  })

  it('send every change after a SIGKILL', async t => {
    const { url, store } = await openStore(t, sqlite)
    const kills = campaign(2, 1_000)
    const receiver = await receive(t, 204)
    await addWebhook(store, { url: receiver.url })
    const seqs = await write(store, 20 * kills, 7)
    const script = new URL('../../support/clients/deliver-endlessly.ts', import.meta.url).pathname
    const start = () =>
      spawn(process.execPath, [script, url], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, NODE_COMPILE_CACHE: compileCache, ...quickLoading },
      })
    for (let kill = 0; kill < kills; kill++) {
      const before = receiver.requests.length
      const child = start()
      await eventually('it sends', () => receiver.requests.length > before)
      // A moment of its work: whichever it is.
      await sleep(Math.random() * 50)
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await deliverUntil({ store }, async () => (await findWebhook(store)).cursor === seqs.at(-1))
    const twice = assertAllInOrder(receiver.received(), seqs)
    assert.ok(twice <= kills * sentAtOnce, `${twice} twice`)
    t.diagnostic(`${kills} kills, ${seqs.length} changes, 0 lost, ${twice} sent again`)
  })
})

it('a webhook’s pause ends at once when a clock that was a day ahead is corrected', {
  timeout: 600_000,
}, async t => {
  const { store } = await openStore(t, sqlite)
  const receiver = await receive(t, 204)
  await write(store, 1, 1)
  await addWebhook(store, {
    url: receiver.url,
    attempts: 1,
    next_at: Date.now() + 86_400_000,
    error: 'failed',
  })
  await deliverUntil({ store }, async () => (await findWebhook(store)).attempts === 0)
  assert.equal(receiver.requests.length, 1)
})
