/** One customer's downloads, however many at once, are no trouble of another's. test/campaign/fair-downloads.test.ts measures it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import type { InvoicingSystem, PaymentPlatform } from '../../src/sources/source.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, assertError, type Service, startService } from '../support/worlds/service.ts'
import { type StoppedClock, settle, stopClock, until } from '../support/worlds/stopped-clock.ts'

const patient = { timeout: 600_000 }

interface Opened {
  id: string
  /** Sends what is missing of the PDF. */
  end(): void
}

/** Both systems: each PDF stays under way until the test ends it. */
function createSlowSources() {
  const opened: Opened[] = []
  const open = (id: string | number) => {
    const body = new PassThrough()
    body.write('%PDF-1.7\n')
    opened.push({ id: String(id), end: () => void body.end('end') })
    return { body, size: null }
  }
  const payments: PaymentPlatform = {
    fetchLines: async () => null,
    openPdf: async id => open(id),
    findPaymentPage: async () => null,
  }
  const documents: InvoicingSystem = {
    openPdf: async id => open(id),
    openQr: async id => ({ ...open(`QR ${id}`), type: 'image/png' }),
  }
  return { opened, payments, documents }
}

const pathOf = (customer: string, kind = 'payments', invoice = `in_${customer}`) =>
  `/api/v1/client/${customer}/invoice/${invoice}/${kind}/download`

async function startSlow(t: TestContext, engine: Engine, customers: readonly string[]) {
  const { opened, ...sources } = createSlowSources()
  const clock = stopClock(t)
  const service = await startService(t, engine, {
    ...sources,
    records: customers.map(customer_id => ({
      ...makeRecord({ id: `in_${customer_id}`, customer_id, ...withDocument }),
      document: exampleDocument,
    })),
  })
  return { clock, service, opened }
}

/** So many at once. */
const askFor = (count: number, service: Service, token: string, customer: string): Promise<Answer>[] =>
  Array.from({ length: count }, () => service.get(pathOf(customer), { token }))

/** Resolves once the service has got to what reached it before: these go the same way, and wait for no turn. */
async function comeAfter(service: Service, token: string): Promise<void> {
  for (let time = 0; time < 3; time++) assert.equal((await service.list('', { token })).status, 200)
}

/** A customer is served a few a second: time passes until it holds, and no faster than the service answers. */
async function passUntil(clock: StoppedClock, service: Service, holds: () => boolean): Promise<void> {
  while (!holds()) await passStep(clock, service)
}

/** A tenth of a second: so little that no connection of the store that is being opened is given up. */
async function passStep(clock: StoppedClock, service: Service): Promise<void> {
  assert.equal((await service.list()).status, 200)
  await clock.pass(100)
}

const [anyEngine] = engines as readonly [Engine]

describe('fair queues of downloads', () => {
  test(
    '300 downloads of one token at once do not delay another customer’s downloads and details',
    patient,
    async t => {
      const { clock, service, opened } = await startSlow(t, anyEngine, ['cus_ana', 'cus_bob'])
      const [ana, bob] = [await service.createToken(), await service.createToken()]
      const crowd = askFor(300, service, ana, 'cus_ana')
      let answered = 0
      for (const answer of crowd) void answer.then(() => answered++)
      await passUntil(clock, service, () => opened.length === 4)
      await comeAfter(service, ana)
      for (let time = 0; time < 5; time++) {
        assert.equal(
          (await service.get('/api/v1/client/cus_bob/invoice/in_cus_bob', { token: bob })).status,
          200,
        )
        const download = service.get(pathOf('cus_bob'), { token: bob })
        await passUntil(clock, service, () => opened.length === 5 + time)
        opened.at(-1)?.end()
        assert.equal((await download).text, '%PDF-1.7\nend')
      }
      assert.deepEqual(
        opened.map(({ id }) => id).slice(4),
        Array(5).fill('in_cus_bob'),
        'the crowd still waits',
      )
      await passUntil(clock, service, () => answered === 296)
      for (const { end } of opened) end()
      const answers = await Promise.all(crowd)
      for (const refusal of answers.filter(({ status }) => status !== 200)) {
        assertError(refusal, 429, 'rate_limited')
        assert.equal(refusal.headers['retry-after'], '5')
      }
      assert.equal(answers.filter(({ text }) => text === '%PDF-1.7\nend').length, 4)
    },
  )

  test('PDFs, related PDFs and QR codes of InvoiceXpress share their turns', patient, async t => {
    const { clock, service, opened } = await startSlow(t, anyEngine, ['cus_ana'])
    const token = await service.createToken()
    const invoice = '/api/v1/client/cus_ana/invoice/in_cus_ana'
    const ask = (path: string) => service.get(`${invoice}/${path}`, { token })
    const first = Array.from({ length: 4 }, () => ask('ix/download'))
    await passUntil(clock, service, () => opened.length === 4)
    const late = ['document/qr', 'related/48377/download'].map(ask)
    await comeAfter(service, token)
    await clock.pass(2_000)
    assert.equal(opened.length, 4, 'four of one customer at once')
    for (const { end } of opened) end()
    await passUntil(clock, service, () => opened.length === 6)
    for (const { end } of opened.slice(4)) end()
    for (const answer of await Promise.all([...first, ...late])) assert.equal(answer.status, 200)
  })

  test('a client that leaves frees its download or its place in the queue', patient, async t => {
    const { clock, service, opened } = await startSlow(t, anyEngine, ['cus_ana'])
    const token = await service.createToken()
    const headers = { authorization: `Bearer ${token}` }
    const options = {
      host: '127.0.0.1',
      port: service.port,
      path: pathOf('cus_ana'),
      headers,
      agent: false,
    }
    const open = () => {
      const outgoing = request(options)
      outgoing.on('error', () => {})
      outgoing.on('response', ({ statusCode }) => assert.equal(statusCode, 200))
      outgoing.end()
      return outgoing
    }
    const running = Array.from({ length: 4 }, open)
    await passUntil(clock, service, () => opened.length === 4)
    const waiting = Array.from({ length: 3 }, open)
    await Promise.all(waiting.map(outgoing => once(outgoing, 'finish')))
    await comeAfter(service, token)
    for (const outgoing of waiting) outgoing.destroy()
    await comeAfter(service, token)
    for (const outgoing of running) outgoing.destroy()
    await comeAfter(service, token)
    await clock.pass(2_000)
    assert.equal(opened.length, 4, 'whoever waited and left is not asked for')
    // HEAD does not wait for the PDF's end, so it ends its turn by itself.
    for (let time = 0; time < 5; time++) {
      const answer = service.get(pathOf('cus_ana'), { method: 'HEAD', token })
      await passUntil(clock, service, () => opened.length === 5 + time)
      assert.equal((await answer).status, 200)
    }
    assert.doesNotMatch(service.logs.join(''), /"level":[45]0/)
  })

  test(
    'a download that waits ten seconds gets 429 because of its own limit, or 503 because of others’ load',
    patient,
    async t => {
      const customers = Array.from({ length: 17 }, (_, index) => `cus_${index}`)
      const { clock, service, opened } = await startSlow(t, anyEngine, customers)
      const tokens = await Promise.all(Array.from({ length: 5 }, () => service.createToken()))
      const [crowding = '', ...rest] = tokens
      // 16 of a token, 64 in all.
      const answers = tokens
        .slice(0, 4)
        .flatMap(token => customers.slice(0, 4).flatMap(customer => askFor(4, service, token, customer)))
      await passUntil(clock, service, () => opened.length === 64)
      const began = clock.passedMs
      let refused = 0
      const late = [
        service.get(pathOf('cus_0'), { token: crowding }),
        service.get(pathOf('cus_16'), { token: crowding }),
        service.get(pathOf('cus_16'), { token: rest.at(-1) ?? '' }),
      ] as const
      for (const answer of late) void answer.then(() => refused++)
      // Nothing of this keeps a list or a detail from being answered.
      assert.equal((await service.list('', { customer: 'cus_0', token: crowding })).status, 200)
      await settle()
      await clock.pass(9_999)
      assert.equal(refused, 0)
      await passUntil(clock, service, () => refused === 3)
      assert.ok(clock.passedMs >= began + 10_000)
      for (const [index, status, code] of [
        [0, 429, 'rate_limited'],
        [1, 429, 'rate_limited'],
        [2, 503, 'unavailable'],
      ] as const) {
        const refusal = (await late[index]) as Answer
        assertError(refusal, status, code)
        assert.equal(refusal.headers['retry-after'], '5')
      }
      assert.equal(opened.length, 64)
      for (const { end } of opened) end()
      for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
    },
  )

  test('waiting downloads are served by token in turn, then by customer of a token', patient, async t => {
    const customers = ['cus_a', 'cus_b', 'cus_c']
    const opened: string[] = []
    const clock = stopClock(t)
    const service = await startService(t, anyEngine, {
      records: customers.map(customer_id => makeRecord({ id: `in_${customer_id}`, customer_id })),
      payments: {
        // The upstream takes two a second, so that all but the first have to wait.
        perSecond: 2,
        fetchLines: async () => null,
        openPdf: async id => {
          opened.push(id.slice('in_cus_'.length))
          const body = new PassThrough()
          body.end('%PDF-1.7\n')
          return { body, size: null }
        },
      },
    })
    const [one, two] = [await service.createToken(), await service.createToken()]
    const crowd = askFor(6, service, one, 'cus_a')
    await until(() => opened.length === 2)
    const later = [service.get(pathOf('cus_b'), { token: one }), service.get(pathOf('cus_c'), { token: two })]
    // The clock stands still: nobody has a turn before all of them wait.
    for (let time = 0; time < 3; time++) assert.equal((await service.list('', { token: two })).status, 200)
    await passUntil(clock, service, () => opened.length === 8)
    await Promise.all([...crowd, ...later])
    const soon = opened.slice(2, 5)
    assert.ok(soon.includes('b') && soon.includes('c'), `nobody waits for the crowd: ${opened}`)
  })

  for (const engine of engines)
    test(
      `four downloads of a customer run at once until their last byte, on ${engine.name}`,
      patient,
      async t => {
        const { clock, service, opened } = await startSlow(t, engine, ['cus_ana', 'cus_bob'])
        const [ana, bob] = [await service.createToken(), await service.createToken()]
        const answers = askFor(6, service, ana, 'cus_ana')
        await passUntil(clock, service, () => opened.length === 4)
        await comeAfter(service, ana)
        for (let step = 0; step < 20; step++) await passStep(clock, service)
        assert.equal(opened.length, 4)
        // The other kind comes from another system, and bob is somebody else.
        const others = [
          service.get(pathOf('cus_ana', 'ix'), { token: ana }),
          service.get(pathOf('cus_bob'), { token: bob }),
          service.get(pathOf('cus_bob'), { token: ana }),
        ]
        await until(() => opened.length === 7)
        opened[0]?.end()
        await until(() => opened.length === 8)
        await comeAfter(service, ana)
        assert.equal(opened.length, 8)
        for (const { end } of opened) end()
        await until(() => opened.length === 9)
        opened.at(-1)?.end()
        for (const { status, text } of await Promise.all([...answers, ...others]))
          assert.deepEqual([status, text], [200, '%PDF-1.7\nend'])
      },
    )
})
