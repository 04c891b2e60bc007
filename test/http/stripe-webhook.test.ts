/** Webhooks as `fatura sync` and `fatura up` receive them: an answer of 2xx means that the change is stored. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { createRandom, pick, type Random } from '../../sandbox/random.ts'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import type { StripeEvent } from '../../sandbox/stripe/objects.ts'
import {
  type DeliverOptions,
  type Delivery,
  post as postSigned,
  sign,
} from '../../sandbox/stripe/webhooks.ts'
import { syncOn } from '../../src/cli/start/start-sync.ts'
import { CliError } from '../../src/cli/terminal/cli-error.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import { createWebhookServer } from '../../src/http/stripe-webhook.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import { openWriteStore, prepareStore } from '../../src/store/engines.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import {
  apiKey,
  assertTruth,
  createSyncWorld,
  freeLease,
  type Receiver,
  readStored,
  type SyncWorld,
  trueRecord,
  webhookSecret,
} from '../support/checks/sync-truth.ts'
import { assertOneLine, eventually, get, isRefused, occupyPort } from '../support/clients/cli.ts'
import { openRaw, parseAnswers, readRss, sendRaw } from '../support/clients/raw-client.ts'
import { engines, runSql } from '../support/databases/engines.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

interface PostOptions {
  secret?: string
  signature?: string
  method?: string
}

function post(url: string, body: string, options: PostOptions = {}): Promise<number> {
  const { secret = webhookSecret, signature = sign(body, secret), method = 'POST' } = options
  return postSigned(url, body, signature, { method, timeoutMs: 40_000 })
}

const postEvent = (url: string, event: StripeEvent) => post(url, JSON.stringify(event))

/** As Stripe sends it: what could not be stored within 2 s, as on a busy machine, is answered 503 and comes again. */
async function sendUntilTaken(send: () => Promise<number>): Promise<number> {
  for (let tries = 1; ; tries++) {
    const status = await send()
    if (status !== 503 || tries === 20) return status
  }
}

async function assertTaken(url: string, event: object): Promise<void> {
  assert.equal(await sendUntilTaken(() => post(url, JSON.stringify(event))), 200)
}

/** All that happened is sent until it is taken; nothing else but "not yet" is answered meanwhile. Says how often was sent. */
async function deliverAll({ sandbox }: SyncWorld, options?: DeliverOptions): Promise<number> {
  let sent = 0
  const last = await sendUntilTaken(async () => {
    const statuses = (await sandbox.deliver(options)).map(({ status }) => status)
    sent += statuses.length
    for (const status of statuses) assert.ok([200, 503].includes(status), `${status}`)
    return statuses.includes(503) ? 503 : 200
  })
  assert.equal(last, 200)
  return sent
}

const kinds = ['create', 'create', 'finalize', 'pay', 'void', 'uncollectible', 'update', 'delete'] as const

/** So many changes, of any kind. */
function change(account: StripeAccount, random: Random, count: number): void {
  for (let done = 0; done < count; done++) account.change(pick(random, kinds))
}

/** A new draft that the store is to have: some of Stripe's invoices are none of ours. */
function createOurs(account: StripeAccount): string {
  for (;;) {
    const id = account.change('create')
    if (trueRecord(account, id) !== null) return id
  }
}

function aboutOf({ data }: StripeEvent): string {
  return String(data.object.id)
}

/** From then on only webhooks bring anything: whatever else the program does waits for events in vain. */
function onlyWebhooks({ sandbox }: SyncWorld): void {
  sandbox.faults.set('list_events', 'hang')
}

/** With the whole account in the store. */
async function receiveAfterSync(world: SyncWorld, args?: readonly string[]): Promise<Receiver> {
  const receiver = await world.receive(args)
  await receiver.waitFor(/"step":"rereadUnsettled".*"msg":"synchronized"/)
  onlyWebhooks(world)
  return receiver
}

const head = (...headers: string[]) => `${['POST / HTTP/1.1', 'Host: x', ...headers].join('\r\n')}\r\n\r\n`
const signed = 'Stripe-Signature: t=1,v1=00'

/** A webhook in flight and a half sent one: the first is finished, both keep nothing from ending. */
async function stopInFlight({ sandbox, account, url }: SyncWorld, receiver: Receiver): Promise<void> {
  account.change('create')
  const event = account.events.at(-1) as StripeEvent
  sandbox.faults.set('retrieve_invoice', 'too_many', { times: 1, retryAfter: '1' })
  sandbox.requests.clear()
  const finished = postEvent(receiver.url, event)
  await eventually('it is in flight', () => sandbox.requests.get('retrieve_invoice') === 1)
  const slow = request(receiver.url, {
    method: 'POST',
    headers: { 'content-length': 10, 'stripe-signature': 't=1' },
  })
  slow.on('error', () => {})
  await new Promise(sent => slow.write('{', sent))
  // What is answered later came later than the half.
  assert.equal(await post(receiver.url, '', { signature: '' }), 400)
  await assertEnds(receiver, () => eventually('nobody listens any more', () => isRefused(receiver.port)))
  // On a busy machine 2 s may be over before: the answer is "not yet" then, and the work is finished all the same.
  const answer = await finished
  const isLate = receiver.stdout
    .split('\n')
    .some(line => line.includes('webhook takes too long') && line.includes(event.id))
  assert.equal(answer, isLate ? 503 : 200)
  const id = aboutOf(event)
  assert.deepEqual((await readStored(url)).records.get(id) ?? null, trueRecord(account, id))
}

/** A webhook for which Stripe never answers keeps nothing from ending, and is not acknowledged. */
async function stopWhileStripeHangs({ sandbox, account, url }: SyncWorld, receiver: Receiver): Promise<void> {
  sandbox.faults.set('*', 'hang')
  const id = createOurs(account)
  sandbox.requests.clear()
  const unfinished = postEvent(receiver.url, account.events.at(-1) as StripeEvent)
  await eventually('it is in flight', () => sandbox.requests.get('retrieve_invoice') === 1)
  await assertEnds(receiver)
  assert.ok([0, 503].includes(await unfinished))
  assert.ok(!(await readStored(url)).records.has(id))
}

async function assertEnds(receiver: Receiver, meanwhile = async () => {}): Promise<void> {
  receiver.child.kill('SIGTERM')
  await meanwhile()
  const { code, stderr } = await receiver.exited
  assert.deepEqual([code, stderr], [0, ''])
}

// All at once: most of them wait.
const beside = { concurrency: 12 }

let thinEvents = 0

function thinEvent(type: string, kind: string, id: string): object {
  return {
    // Every event has an id of its own: what was handled is not handled again.
    id: `evt_test_65Thin${thinEvents++}`,
    object: 'v2.core.event',
    type,
    livemode: false,
    created: new Date().toISOString(),
    related_object: { id, type: kind, url: `/v1/${kind}s/${id}` },
  }
}

/** How often a receiver is killed, at least. */
const kills = { sqlite: campaign(2, 20), postgres: campaign(1, 20), citus: campaign(1, 20) }
/** How many events are acknowledged, at least. */
const acknowledgements = campaign(1, 1_000)
/** How many events are on their way at once. */
const senders = 6

it('a webhook that is not stored within two seconds gets 503, and is stored afterwards', {
  timeout: 600_000,
}, async t => {
  const stored = Promise.withResolvers<void>()
  let applied = 0
  const logged: string[] = []
  const server = createWebhookServer({
    stripe: { apiKey, base: 'http://127.0.0.1:1' },
    secret: webhookSecret,
    apply() {
      applied++
      return stored.promise
    },
    log: pino({ base: null }, { write: line => void logged.push(line) }),
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const body = JSON.stringify(thinEvent('v1.invoice.paid', 'invoice', 'in_1'))
  const clock = stopClock(t)
  let isAnswered = false
  const refused = post(url, body).finally(() => {
    isAnswered = true
  })
  await until(() => applied === 1)
  await clock.pass(1_999)
  assert.equal(isAnswered, false)
  await clock.pass(1)
  assert.equal(await refused, 503)
  assert.match(logged.join(''), /webhook takes too long/)
  const taken = post(url, body)
  await until(() => applied === 2)
  stored.resolve()
  assert.equal(await taken, 200)
  assert.doesNotMatch(logged.join(''), /webhook failed/)
})

describe('Stripe’s webhooks', beside, () => {
  it('are stored before they are acknowledged, also out of order and twice, until SIGTERM ends fatura sync', async t => {
    const world = await createSyncWorld(t, { invoices: 40, seed: 21 })
    const { sandbox, account } = world
    const receiver = await receiveAfterSync(world)
    sandbox.subscribe(receiver.url, webhookSecret)
    const random = createRandom(21)
    let sent = 0
    for (let round = 0; round < 3; round++) {
      change(account, random, 15)
      sent += await deliverAll(world, { order: 'shuffled', duplicate: 0.4 })
      await assertTruth(world.url, account)
    }
    // All that ever happened, told once more and backwards.
    for (const event of account.events.toReversed()) await assertTaken(receiver.url, event)
    await assertTruth(world.url, account)

    const draft = account.invoices.get(createOurs(account)) ?? assert.fail()
    await deliverAll(world)
    account.renameCustomer(String(draft.customer), 'Firma Nova')
    await deliverAll(world)
    const { records } = await readStored(world.url)
    assert.equal(records.get(draft.id)?.invoice.customer_name, 'Firma Nova')
    assert.deepEqual(records.get(draft.id), trueRecord(account, draft.id))
    t.diagnostic(`${sent + account.events.length} deliveries`)
    await stopInFlight(world, receiver)
  })

  it('that arrive at one receiver', async t => {
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 22 })
    onlyWebhooks(world)
    const receiver = await world.receive()
    const look = async () => ({
      records: (await readStored(world.url)).records,
      asked: world.sandbox.requests.get('retrieve_invoice'),
    })

    await t.test(
      'that name no invoice are acknowledged, and requests that are not events are refused',
      async () => {
        const { account } = world
        const before = await look()
        const id = createOurs(account)
        const event = account.events.at(-1) as StripeEvent
        const { id: _, ...preview } = event.data.object
        const others: object[] = [
          { ...event, type: 'invoice.upcoming', data: { object: preview } },
          { ...event, type: 'invoice.upcoming', data: { object: { ...preview, id: 'upcoming_in_1' } } },
          { ...event, type: 'charge.succeeded', data: { object: { id: 'ch_1', object: 'charge' } } },
          { ...event, type: 'something.new', data: { object: {} } },
          thinEvent('v1.billing.meter.error_report_triggered', 'billing.meter', 'mtr_1'),
          { ...thinEvent('v2.core.event_destination.ping', '', ''), related_object: null },
        ]
        for (const other of others) await assertTaken(receiver.url, other)
        assert.deepEqual(await look(), before)
        await eventually('each is counted in the log', () => {
          return receiver.stdout.match(/"applied":false,"msg":"webhook"/g)?.length === others.length
        })

        for (const size of [1024 * 1024 + 1, 8 * 1024 * 1024])
          assert.equal(await post(receiver.url, ' '.repeat(size)), 413)
        for (const method of ['GET', 'PUT', 'DELETE'])
          assert.equal(await post(receiver.url, '', { method }), 405, method)

        await assertTaken(receiver.url, thinEvent('v1.invoice.created', 'invoice', id))
        assert.deepEqual((await readStored(world.url)).records.get(id), trueRecord(account, id) ?? undefined)
      },
    )

    await t.test('are refused without a current signature over their exact bytes', async () => {
      const before = await look()
      const id = world.account.change('finalize')
      const event = world.account.events.at(-1) as StripeEvent
      const body = JSON.stringify(event)
      const refused: PostOptions[] = [
        { secret: 'whsec_other' },
        { signature: '' },
        { signature: 'canary' },
        { signature: sign(body, webhookSecret, Math.floor(Date.now() / 1000) - 3_600) },
        { signature: sign(`${body} `, webhookSecret) },
        { signature: sign(body, webhookSecret, Number.NaN) },
        { signature: sign(body, webhookSecret, Math.floor(Date.now() / 1000) + 3_600) },
        { signature: sign(body, webhookSecret, 253_402_300_799) },
      ]
      for (const options of refused) assert.equal(await post(receiver.url, body, options), 400)
      for (const text of ['', '{}', 'canary', body.slice(0, 100)])
        assert.equal(await post(receiver.url, text, { secret: 'whsec_other' }), 400, text)
      const thin = JSON.stringify(thinEvent('v1.invoice.paid', 'invoice', id))
      assert.equal(await post(receiver.url, thin, { secret: 'whsec_other' }), 400)
      assert.deepEqual(await look(), before, 'nothing is stored, and nothing is asked for')
      await assertTaken(receiver.url, event)
    })

    await t.test('are accepted with the old and the new secret while the secret is rotated', async () => {
      world.account.change('finalize')
      const event = world.account.events.at(-1) as StripeEvent
      const body = JSON.stringify(event)
      // As Stripe signs for as long as the former secret is valid: with both, in one header.
      const both = (secrets: [string, string]) => {
        const [first = '', second = ''] = secrets.map(secret => sign(body, secret))
        return `${first},${second.slice(second.indexOf('v1='))}`
      }
      const send = (signature: string) => sendUntilTaken(() => post(receiver.url, body, { signature }))
      assert.equal(await send(both([webhookSecret, 'whsec_new'])), 200, 'not restarted yet')
      assert.equal(await send(both(['whsec_former', webhookSecret])), 200, 'restarted')
      assert.equal(await send(both(['whsec_former', 'whsec_other'])), 400, 'neither is ours')
    })

    await t.test(
      'about an invalid invoice are acknowledged, and the invoice is set aside at once',
      async () => {
        const { account, sandbox } = world
        const id = createOurs(account)
        const event = account.events.at(-1) as StripeEvent
        const invoice = account.invoices.get(id) as { currency: unknown }
        const { currency } = invoice
        invoice.currency = 7
        sandbox.requests.clear()
        assert.equal(await postEvent(receiver.url, event), 200)
        assert.equal(sandbox.requests.get('retrieve_invoice'), 1, 'it would not fit the second time either')
        const store = await openWriteStore(world.url)
        const [aside, ...others] = await store.listSetAside(9, undefined, { id })
        await store.close()
        assert.deepEqual([aside?.kind, others], ['invoice', []])
        assert.match(String(aside?.reason), /currency is a number/)
        invoice.currency = currency
        account.change('update', id)
        await assertTaken(receiver.url, account.events.at(-1) as StripeEvent)
        assert.deepEqual((await readStored(world.url)).records.get(id), trueRecord(account, id) ?? undefined)
      },
    )

    await t.test('in thin form delete a draft, although they name no customer', async () => {
      const { account } = world
      const { records } = await look()
      const id = createOurs(account)
      await assertTaken(receiver.url, thinEvent('v1.invoice.created', 'invoice', id))
      assert.ok((await readStored(world.url)).records.has(id))
      account.change('delete', id)
      const deleted = thinEvent('v1.invoice.deleted', 'invoice', id)
      await assertTaken(receiver.url, { ...deleted, created: 'at an unknown moment' })
      assert.deepEqual((await look()).records, records)

      // A customer's tax id changed: the customer's invoices are looked at.
      const owned =
        [...account.invoices.values()].find(({ id, customer }) => customer !== null && !records.has(id)) ??
        assert.fail()
      const changed = {
        ...thinEvent('v1.customer.tax_id.created', 'tax_id', 'txi_1'),
        related_object: {
          id: 'txi_1',
          type: 'tax_id',
          url: `/v1/customers/${owned.customer}/tax_ids/txi_1`,
        },
      }
      await assertTaken(receiver.url, changed)
      assert.ok((await readStored(world.url)).records.has(owned.id))
    })

    await t.test('are not acknowledged while Stripe does not show the invoice', async () => {
      const { sandbox, account } = world
      sandbox.subscribe(receiver.url, webhookSecret)
      let id: string
      do {
        // What happened before is no part of this, nor is what is none of ours.
        await deliverAll(world)
        id = account.change('create')
      } while (trueRecord(account, id) === null)
      const { records } = await look()
      sandbox.faults.set('retrieve_invoice', 'error_500')
      const [refused] = await sandbox.deliver()
      assert.equal(refused?.status, 503)
      assert.deepEqual((await look()).records, records)
      sandbox.faults.set('retrieve_invoice', 'missing_id', { times: 1 })
      // The look that failed may still be on its way, and is waited for no longer than a sender is to wait.
      let again: Delivery | undefined
      await sendUntilTaken(async () => {
        again = (await sandbox.deliver())[0]
        return again?.status ?? 0
      })
      assert.deepEqual([again?.event.id, again?.status], [refused?.event.id, 200])
      assert.equal(aboutOf(again?.event as StripeEvent), id)
      assert.deepEqual((await readStored(world.url)).records.get(id), trueRecord(account, id) ?? undefined)
    })

    await t.test(
      'are refused before their body is read when the signature is missing or a header is invalid',
      async () => {
        const { port } = receiver
        // None of these ever sends its body. The answer comes all the same, and before the time for a body is over: that is 408.
        for (const [bytes, status] of [
          [head('Content-Length: 10'), 400],
          [head('Stripe-Signature:', 'Content-Length: 10'), 400],
          [head(signed, 'Content-Length: 1048577'), 413],
          [head(signed, 'Content-Length: 999999999999'), 413],
          [head(signed, 'Host: y', 'Content-Length: 10'), 400],
          [head(signed, 'Transfer-Encoding: xchunked'), 400],
        ] as const) {
          const [answer, ...others] = await sendRaw(port, bytes)
          assert.deepEqual(
            [answer?.status, answer?.json, others.length],
            [status, { received: false }, 0],
            bytes,
          )
          assert.equal(answer?.headers.connection, 'close')
          assert.equal(answer?.headers['x-content-type-options'], 'nosniff')
        }
        const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
        const endless = await sendRaw(port, head(signed, 'Transfer-Encoding: chunked') + chunk.repeat(40))
        assert.deepEqual(
          endless.map(({ status }) => status),
          [413],
        )
      },
    )
  })

  it('are answered in time while Stripe is slow, and are applied afterwards', async t => {
    const world = await createSyncWorld(t, { invoices: 20, lines: 1, seed: 32 })
    const { sandbox, account } = world
    const receiver = await receiveAfterSync(world)
    const id = account.change('finalize')
    const event = account.events.at(-1) as StripeEvent
    sandbox.faults.set('retrieve_invoice', 'too_many', { times: 1, retryAfter: '4' })
    sandbox.requests.clear()
    assert.equal(await postEvent(receiver.url, event), 503)
    // To read the whole store is not cheap: not before there can be something new in it.
    await eventually('it is asked for again', () => sandbox.requests.get('retrieve_invoice') === 2)
    await eventually('it is applied', async () => {
      const { records } = await readStored(world.url)
      return records.get(id)?.invoice.status === trueRecord(account, id)?.invoice.status
    })
    await assertTaken(receiver.url, event)
    assert.equal(sandbox.requests.get('retrieve_invoice'), 2, 'what was applied is not fetched again')
    await stopWhileStripeHangs(world, receiver)
  })

  it('are not acknowledged when the store fails, and the log has no record’s data', async t => {
    const [, postgres] = engines
    assert.ok(postgres)
    const world = await createSyncWorld(
      t,
      { invoices: 20, lines: 1, seed: 31 },
      await postgres.createStore(t),
    )
    const { account } = world
    await runSql(world.url, 'ALTER TABLE fatura.invoices ADD CONSTRAINT none CHECK (false) NOT VALID')
    const receiver = await world.receive()
    const [record] = [...account.invoices.keys()].flatMap(id => trueRecord(account, id) ?? [])
    const { id } = record?.invoice ?? assert.fail()
    const event = thinEvent('v1.invoice.updated', 'invoice', id)
    await receiver.waitFor(/"msg":"sync failed; trying again"/)
    assert.equal(await post(receiver.url, JSON.stringify(event)), 503)
    assert.equal((await readStored(world.url)).records.size, 0)
    // Lines are written together, a moment later.
    await receiver.waitFor(/"msg":"webhook failed"/)
    await runSql(world.url, 'ALTER TABLE fatura.invoices DROP CONSTRAINT none')
    await assertTaken(receiver.url, event)
    assert.deepEqual((await readStored(world.url)).records.get(id), record)
    await receiver.waitFor(/"step":"backfill".*"msg":"synchronized"/)
    await assertTruth(world.url, account)
    const { stdout } = receiver
    assert.match(stdout, /"message":"new row .*"msg":"webhook failed"/)
    assert.ok(!stdout.includes('Failing row'), stdout)
  })

  for (const engine of engines)
    it(`that were acknowledged are stored when the receiver is killed, on ${engine.name}`, async t => {
      const world = await createSyncWorld(
        t,
        { invoices: 50, lines: 1, seed: 25 },
        await engine.createStore(t),
      )
      onlyWebhooks(world)
      const { account } = world
      const random = createRandom(25)
      const goal = kills[engine.name as keyof typeof kills]
      let acknowledged = 0
      let cutOff = 0
      let kill = 0
      for (; kill < goal || acknowledged < acknowledgements; kill++) {
        const receiver = await world.receive()
        const first = account.events.length
        change(account, random, campaign(40, 80))
        const due = account.events.slice(first)
        const last = random() * due.length * 0.8
        const answered: StripeEvent[] = []
        const send = async () => {
          for (let event = due.shift(); event !== undefined; event = due.shift()) {
            const status = await postEvent(receiver.url, event)
            if (status >= 200 && status < 300) answered.push(event)
            else cutOff++
            if (answered.length >= last) receiver.child.kill('SIGKILL')
          }
        }
        await Promise.all(Array.from({ length: senders }, send))
        await receiver.exited
        await freeLease(world.url)
        acknowledged += answered.length
        const { records } = await readStored(world.url)
        for (const event of answered) {
          const id = aboutOf(event)
          assert.deepEqual(records.get(id) ?? null, trueRecord(account, id), `${id} after kill ${kill}`)
        }
      }
      assert.ok(cutOff > goal)
      reportFigure(
        t,
        'R2',
        `${engine.name}: 0 of ${acknowledged} acknowledged events missing after ${kill} kills`,
      )
    })

  it('are received by fatura up, which answers meanwhile, shows its freshness, and ends at SIGTERM', async t => {
    const world = await createSyncWorld(t, { invoices: 60, lines: 1, seed: 26 })
    const { sandbox, account } = world
    const token = await world.cli.createToken()
    const [record] = [...account.invoices.keys()].flatMap(id => trueRecord(account, id) ?? [])
    assert.ok(record)
    const path = `/api/v1/client/${record.invoice.customer_id}/invoices`
    // The first page has to wait; what is asked meanwhile does not.
    sandbox.faults.set('list_invoices', 'too_many', { times: 1, retryAfter: '1' })
    const startedAt = Date.now()
    const receiver = await world.receive(['up', '--port', '0'])
    const [, api] = await receiver.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
    const early = await get(api + path, token)
    assert.deepEqual([early.status, early.json.total], [200, 0])
    assert.equal(early.headers.get('fatura-synced-at'), null)

    let asked = 0
    await eventually('it tells how fresh it is', async () => {
      const answer = await get(api + path, token)
      asked++
      assert.equal(answer.status, 200)
      return answer.headers.has('fatura-synced-at')
    })
    await assertTruth(world.url, account)
    const { json, headers } = await get(api + path, token)
    assert.ok(json.total > 0)
    const syncedAt = Date.parse(headers.get('fatura-synced-at') ?? '')
    assert.ok(syncedAt >= Math.floor(startedAt / 1_000) * 1_000 && syncedAt <= Date.now())

    await receiver.waitFor(/"step":"rereadUnsettled"/)
    onlyWebhooks(world)
    sandbox.subscribe(receiver.url, webhookSecret)
    change(account, createRandom(26), 10)
    await deliverAll(world)
    await assertTruth(world.url, account)

    // Each port has its own task alone.
    const event = JSON.stringify(account.events.at(-1))
    assert.equal(await post(`${api}/`, event), 405)
    assert.ok([404, 405].includes(await post(`${api}${path}`, event)))
    for (const other of ['live', 'ready', path.slice(1)])
      assert.equal(await post(receiver.url + other, '', { method: 'GET' }), 405)
    await stopInFlight(world, receiver)
    assert.match(receiver.stdout, /"msg":"stopped"}\n$/)
    t.diagnostic(`${asked} requests answered before the first success`)
  })

  it('are received by fatura up after a failure, and it ends at SIGTERM while Stripe hangs', async t => {
    const world = await createSyncWorld(t, { invoices: 20, lines: 1, seed: 27 })
    // It waits for seconds before it asks again, by its own clock.
    Object.assign(world.env, quickClock(5))
    world.sandbox.faults.set('list_events', 'error_500')
    const receiver = await world.receive(['up', '--port', '0'])
    const [, api] = await receiver.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
    await receiver.waitFor(/"msg":"sync failed; trying again"/)
    assert.equal((await get(`${api}/ready`)).status, 200)
    world.sandbox.faults.clear()
    for (const step of ['catchUp', 'rereadUnsettled'])
      await receiver.waitFor(new RegExp(`"step":"${step}".*"msg":"synchronized"`))
    await assertTruth(world.url, world.account)
    onlyWebhooks(world)
    await stopWhileStripeHangs(world, receiver)
  })

  it('cannot be received when the port is in use, which ends sync and up with one line', async t => {
    const world = await createSyncWorld(t, { invoices: 1, seed: 30 })
    const port = await occupyPort(t)
    const told = `Cannot receive webhooks on 127.0.0.1:${port}`
    const args = ['up', '--port', '0', '--webhooks', `${port}`]
    assertOneLine(await world.run(args, { env: { LOG_LEVEL: 'silent' } }), new RegExp(told))
    await prepareStore(world.url)
    const following = syncOn({
      url: world.url,
      stripe: { apiKey, base: world.sandbox.address },
      invoiceXpress: null,
      rules: { ...defaultRules, isConnected: false },
      keys: defaultKeys,
      webhooks: { host: '127.0.0.1', port, secret: webhookSecret },
      changesKeptMs: 86_400_000,
      outgoingWebhooksPrivate: false,
      log: pino({ level: 'silent' }),
      signal: new AbortController().signal,
    })
    await assert.rejects(following, error => error instanceof CliError && error.message.startsWith(told))
  })

  it('from unknown senders need little memory, and do not displace genuine events', {
    timeout: 600_000,
  }, async t => {
    const world = await createSyncWorld(t, { invoices: 5, seed: 32 })
    onlyWebhooks(world)
    const receiver = await world.receive()
    const event = () => {
      world.account.change('create')
      return world.account.events.at(-1) as StripeEvent
    }
    await assertTaken(receiver.url, event())
    const before = readRss(receiver.pid)
    // Each sends all but the last byte of the most it may, and waits; some in pieces of one byte.
    const clients = Array.from({ length: 60 }, (_, i) =>
      i % 10 === 0
        ? openRaw(receiver.port, head(signed, 'Transfer-Encoding: chunked') + '1\r\nx\r\n'.repeat(100_000))
        : openRaw(receiver.port, head(signed, 'Content-Length: 1048576') + 'x'.repeat(1_048_575)),
    )
    t.after(() => {
      for (const { socket } of clients) socket.destroy()
    })
    await eventually('some are given up', () => clients.some(({ raw }) => raw.includes(' 503 ')))
    await assertTaken(receiver.url, event())
    const added = (readRss(receiver.pid) - before) / 1024 / 1024
    t.diagnostic(`60 bodies of up to 1 MiB add ${added.toFixed(0)} MB`)
    assert.ok(added < 128, `${added.toFixed(0)} MB`)
    await Promise.all(clients.map(({ ended }) => ended))
    const statuses = clients.flatMap(({ raw }) => parseAnswers(raw).map(({ status }) => status))
    assert.deepEqual([...new Set(statuses)].sort(), [408, 503])
    assert.equal(statuses.length, clients.length)
  })
})
