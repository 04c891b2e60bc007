/** The typed client over the real service: what it gives, remembers, waits for and refuses. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { createToken } from '../../src/http/access/token.ts'
import { type ClientOptions, createClient, FaturaError, type Invoice } from '../../src/sdk/client.ts'
import { type Pdf, SourceError } from '../../src/sources/source.ts'
import { eventually } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { startUpstream } from '../support/upstreams/pdf-upstream.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Service, shareService, startService } from '../support/worlds/service.ts'
import { type StoppedClock, stopClock, until } from '../support/worlds/stopped-clock.ts'

const pdf = (content: string): Pdf => ({
  body: Readable.from([Buffer.from(`%PDF-1.7\n${content}`)]),
  size: null,
})
const documents = { openPdf: async (id: number) => pdf(`ix ${id}`) }

/** A client of the service, and the status of every answer it was given. */
async function connect(service: Service, options: Partial<ClientOptions> = {}) {
  const statuses: number[] = []
  const client = createClient({
    baseUrl: service.address,
    token: await service.createToken(),
    fetch: async (...given) => {
      const answer = await fetch(...given)
      statuses.push(answer.status)
      return answer
    },
    ...options,
  })
  return { client, statuses }
}

const records = [
  makeRecord({ id: 'in_1', number: 'FT 2026/7 é', ...withDocument }, [makeLine()]),
  makeRecord({ id: 'in_2', number: null, status: 'draft', issued_at: '2026-04-01T00:00:00.000Z' }),
]

/** `count` invoices, one each minute; the newest has the highest number. */
const many = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    makeRecord({ id: `in_m${at}`, issued_at: new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString() }),
  )

const fails = (code: string, fields: Partial<FaturaError> = {}) => {
  return (error: unknown) => {
    assert.ok(error instanceof FaturaError, String(error))
    assert.equal(error.code, code)
    for (const [name, value] of Object.entries(fields)) assert.equal(error[name as 'code'], value, name)
    return true
  }
}

// What an engine has a part in, tests of the API show.
const [engine] = engines as readonly [Engine]

describe('the client of the SDK', { concurrency: 6 }, () => {
  const service = shareService(engine, { records, documents })

  test('returns a page, an invoice and a PDF unchanged, with their freshness', async () => {
    const { client } = await connect(service(), { baseUrl: `${service().address}/` })
    const page = await client.invoices.list('cus_ana', { status: 'paid', q: 'ana', page_size: 5 })
    const raw = await service().list('?status=paid&q=ana&page_size=5')
    assert.deepEqual(page.data, raw.json)
    assert.equal(page.etag, raw.headers.etag)
    assert.match(String(page.requestId), /^req_/)
    assert.equal(page.syncedAt, null)

    const { data } = await client.invoice.get('cus_ana', 'in_1')
    assert.deepEqual(data, (await service().get('/api/v1/client/cus_ana/invoice/in_1')).json)

    const download = await client.downloadPdf('cus_ana', 'in_1', 'ix')
    assert.equal(download.fileName, 'FT 2026-7 é in_1.pdf')
    assert.equal(await text(download.body), '%PDF-1.7\nix 4711')
  })

  test('takes syncedAt from the service, also from a 304', async t => {
    const service = await startService(t, engine, { records })
    const { client, statuses } = await connect(service)
    for (const moment of [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)]) {
      await service.store.transaction(tx => tx.saveSuccess('import', moment))
      // The service reads it twice a second.
      const isSeen = async () => (await client.invoices.list('cus_ana')).syncedAt?.getTime() === moment
      await eventually('it is seen', isSeen)
    }
    assert.deepEqual([...new Set(statuses)], [200, 304])
  })

  test('returns the same object after a 304, and a new object after a change', async t => {
    const service = await startService(t, engine, { records })
    const { client, statuses } = await connect(service)
    const poll = () => client.invoices.list('cus_ana', { status: 'paid' })
    const first = await poll()
    const detail = await client.invoice.get('cus_ana', 'in_1')
    assert.equal((await poll()).data, first.data)
    assert.equal((await client.invoice.get('cus_ana', 'in_1')).data, detail.data)
    assert.ok(Object.isFrozen(first.data.invoices[0]))
    // The ETag is the customer's: another query must not be answered from this one.
    assert.equal((await client.invoices.list('cus_ana', { status: 'draft' })).data.invoices[0]?.id, 'in_2')
    await service.save(makeRecord({ id: 'in_3' }))
    assert.deepEqual((await poll()).data.total, 2)
    assert.deepEqual(statuses, [200, 200, 304, 304, 200, 200])
  })

  test('forgets the oldest answers when it holds too many', async () => {
    const { client, statuses } = await connect(service(), { remember: 2 })
    for (const page_size of [1, 2, 3, 1, 3]) await client.invoices.list('cus_ana', { page_size })
    assert.deepEqual(statuses, [200, 200, 200, 200, 304])
  })

  test('gives every invoice once and in order with all(), for any number of pages and filters', async t => {
    const service = await startService(t, engine, {
      records: [...many(120), makeRecord({ status: 'void' })],
    })
    const { client, statuses } = await connect(service)
    const walk = client.invoices.all('cus_ana', { status: 'paid' })
    assert.equal(walk.total, null)
    const ids: string[] = []
    for await (const { id } of walk) ids.push(id)
    assert.deepEqual(
      ids,
      many(120)
        .map(({ invoice }) => invoice.id)
        .reverse(),
    )
    assert.deepEqual([walk.total, walk.seen, walk.changed, statuses.length], [120, 120, false, 3])
    for await (const _ of client.invoices.all('cus_nobody')) assert.fail('nobody has none')
  })

  test('reports with all() that the customer changed between two pages, and gives no invoice twice', async t => {
    const service = await startService(t, engine, { records: many(60) })
    const { client } = await connect(service)
    const walk = client.invoices.all('cus_ana')
    const ids: string[] = []
    for await (const { id } of walk) {
      if (ids.push(id) === 50)
        await service.save(makeRecord({ id: 'in_new', issued_at: '2026-12-01T00:00:00.000Z' }))
    }
    assert.deepEqual([walk.changed, walk.total, ids.length, new Set(ids).size], [true, 61, 60, 60])
    let again = 0
    for await (const _ of walk) again++
    assert.deepEqual([walk.changed, again], [false, 61])
  })

  test('requests no further page when a loop over all() stops, and rejects when the signal aborts', async t => {
    const service = await startService(t, engine, { records: many(60) })
    const { client, statuses } = await connect(service)
    for await (const _ of client.invoices.all('cus_ana')) break
    assert.equal(statuses.length, 1)
    const stop = new AbortController()
    await assert.rejects(
      async () => {
        for await (const _ of client.invoices.all('cus_ana', {}, { signal: stop.signal })) stop.abort()
      },
      { name: 'AbortError' },
    )
  })

  test('throws an error with the answer’s code, status, request ID and parameter', async () => {
    const { client } = await connect(service())
    await assert.rejects(
      client.invoices.list('cus_ana', { date_from: '2026-02-30' }),
      fails('invalid_parameter', { status: 400, param: 'date_from', retryAfter: null }),
    )
    const unknown = client.invoice.get('cus_ana', 'in_none')
    await assert.rejects(unknown, fails('invoice_not_found', { status: 404, param: null }))
    await assert.rejects(unknown, ({ requestId, message }: FaturaError) => {
      assert.ok(service().logs.some(line => line.includes(String(requestId))))
      return message === 'This customer has no such invoice.'
    })
    await assert.rejects(client.downloadPdf('cus_ana', 'in_2', 'ix'), fails('document_not_found'))
    await assert.rejects(client.downloadPdf('cus_ana', 'in_2', 'payments'), fails('document_not_issued'))
    // No id can leave its place in the path.
    await assert.rejects(client.invoice.get('cus_ana/../cus_eve', 'in_1'), fails('invalid_parameter'))
  })

  test('gives up before a wait that is longer than allowed, and at once when it is aborted', {
    timeout: 600_000,
  }, async t => {
    const openPdf = async () => {
      throw new SourceError('not_ready', 'being made', { retryAfter: 30 })
    }
    const service = await startService(t, engine, { records, documents: { openPdf } })
    const { client } = await connect(service, { maxWaitMs: 20_000 })
    const notReady = fails('document_not_ready', { status: 503, retryAfter: 30 })
    await assert.rejects(client.downloadPdf('cus_ana', 'in_1', 'ix'), notReady)
    const patient = await connect(service)
    const stop = new AbortController()
    const call = { signal: stop.signal, onWait: () => stop.abort(new Error('no more')) }
    await assert.rejects(patient.client.downloadPdf('cus_ana', 'in_1', 'ix', call), { message: 'no more' })
  })

  test('calls the function that gives the token once for many calls, and again after a 401', async () => {
    const tokens = [createToken().token, await service().createToken()]
    let asked = 0
    const { client, statuses } = await connect(service(), { token: async () => tokens[asked++] as string })
    const calls = () => Promise.all([1, 2, 3].map(page => client.invoices.list('cus_ana', { page })))
    await calls()
    await calls()
    assert.equal(asked, 2)
    assert.deepEqual(statuses.sort(), [200, 200, 200, 304, 304, 304, 401, 401, 401])

    const bad = createToken().token
    const refused = await connect(service(), { token: async () => bad })
    await assert.rejects(refused.client.invoices.list('cus_ana'), fails('invalid_token', { status: 401 }))
    assert.deepEqual(refused.statuses, [401, 401])
    const fixed = await connect(service(), { token: bad })
    await assert.rejects(fixed.client.invoices.list('cus_ana'), fails('invalid_token'))
    assert.deepEqual(fixed.statuses, [401])
  })

  test('reports an incomplete PDF as an error', async t => {
    const service = await startService(t, engine, {
      records,
      documents: {
        openPdf: async () => ({
          body: Readable.from(
            (async function* () {
              yield Buffer.from('%PDF-1.7\n')
              throw new Error('broke off')
            })(),
          ),
          size: 100,
        }),
      },
    })
    const { client } = await connect(service)
    const { body, size } = await client.downloadPdf('cus_ana', 'in_1', 'ix')
    assert.equal(size, 100)
    await assert.rejects(text(body))
  })
})

const list = (client: ReturnType<typeof createClient>) => client.invoices.list('cus_ana')

describe('the client of the SDK with another or a faulty server', { concurrency: 6 }, () => {
  test('refuses another program’s answer with status 200, for a list or a PDF', async t => {
    const { origin } = await startUpstream(t, (_, response) => {
      response.setHeader('content-type', 'text/html').end('Welcome to our wireless network')
    })
    const client = createClient({ baseUrl: origin, token: 'fat_x' })
    await assert.rejects(list(client), fails('unexpected_answer', { status: 200 }))
    await assert.rejects(client.downloadPdf('cus_ana', 'in_1', 'ix'), fails('unexpected_answer'))
  })

  test('throws an error when a page has fewer invoices than its total announces', async t => {
    const { origin } = await startUpstream(t, (_, response) => {
      const body = { invoices: [] as Invoice[], page: 1, page_size: 50, total: 7, total_pages: 1 }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    })
    const walk = createClient({ baseUrl: origin, token: 'fat_x' }).invoices.all('cus_ana')
    await assert.rejects(async () => {
      for await (const _ of walk) assert.fail()
    }, fails('unexpected_answer'))
  })

  test('refuses parameters that the service would ignore, and tokens that cannot be sent', async () => {
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', token: 'two words' })
    await assert.rejects(client.invoices.list('cus_ana', { page_size: 51 }), RangeError)
    await assert.rejects(
      client.invoices.list('cus_ana', { from: '2026-01-01' } as never),
      /from is no filter/,
    )
    await assert.rejects(list(client), { name: 'TypeError', message: /^The token must be/ })
    assert.throws(() => createClient({ baseUrl: 'example.com', token: '' }), /baseUrl must begin with/)
    const asked = createClient({ baseUrl: '', token: () => Promise.reject(new Error('session over')) })
    await assert.rejects(list(asked), { message: 'session over' })
  })
})

/** The waits of calls, which are over when the test lets them. */
function createWaits(clock: StoppedClock) {
  const waits: { ms: number; error: FaturaError }[] = []
  return {
    onWait: (error: FaturaError, ms: number) => void waits.push({ ms, error }),
    /** Lets the next wait pass, and asserts that nothing is asked before its end. */
    async pass(answers: () => number): Promise<{ ms: number; error: FaturaError }> {
      await until(() => waits.length > 0)
      const wait = waits.shift() ?? assert.fail()
      const before = answers()
      await clock.pass(wait.ms - 1)
      assert.equal(answers(), before, 'nothing is asked before its time')
      await clock.pass(1)
      return wait
    },
  }
}

// One after the other: this process has one clock.
describe('the client of the SDK over time', () => {
  test('waits for a PDF that is not ready, by Retry-After, and reports the wait', async t => {
    const clock = stopClock(t)
    let asked = 0
    const service = await startService(t, engine, {
      records,
      documents: {
        async openPdf() {
          if (++asked <= 5) throw new SourceError('not_ready', 'being made', { retryAfter: 7 })
          return pdf('made')
        },
      },
    })
    const { client, statuses } = await connect(service)
    const { onWait, pass } = createWaits(clock)
    const download = client.downloadPdf('cus_ana', 'in_1', 'ix', { onWait })
    for (let wait = 0; wait < 5; wait++) {
      const { ms, error } = await pass(() => asked)
      assert.deepEqual([error.code, error.retryAfter], ['document_not_ready', 7])
      assert.ok(ms >= 7_000 && ms <= 7_250, `${ms} ms`)
    }
    assert.equal(await text((await download).body), '%PDF-1.7\nmade')
    assert.deepEqual(statuses, [503, 503, 503, 503, 503, 200])
  })

  test('retries after the Retry-After of the rate limit, not earlier', async t => {
    const clock = stopClock(t)
    const service = await startService(t, engine, { records, rateLimit: { requests: 1, seconds: 10 } })
    const { client, statuses } = await connect(service)
    const { onWait, pass } = createWaits(clock)
    const get = () => client.invoice.get('cus_ana', 'in_1', { onWait })
    await get()
    const second = get()
    const { error } = await pass(() => statuses.length)
    assert.equal(error.retryAfter, 10)
    await second
    assert.deepEqual(statuses, [200, 429, 304])
  })

  test('retries after broken connections and a 502 with growing pauses, and then gives up', async t => {
    const clock = stopClock(t)
    const upstream = await startUpstream(t, (request, response) => {
      switch (upstream.requests.length) {
        case 1:
          return request.socket.destroy()
        case 2:
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
          return response.write('{"invoices":[', () => request.socket.destroy())
        default:
          response.writeHead(502, { 'content-type': 'text/html' }).end('<p>')
      }
    })
    const hasty = createClient({ baseUrl: upstream.origin, token: 'fat_x', retries: 0 })
    await assert.rejects(list(hasty), fails('connection_failed', { status: null, requestId: null }))
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const place = `127.0.0.1:${(gone.address() as AddressInfo).port}`
    gone.close()
    const nobody = createClient({ baseUrl: `http://${place}`, token: 'fat_x', retries: 0 })
    await assert.rejects(list(nobody), {
      code: 'connection_failed',
      message: `http://${place} sent no whole answer: connect ECONNREFUSED ${place}.`,
    })
    const client = createClient({ baseUrl: upstream.origin, token: 'fat_x', retries: 2 })
    const { onWait, pass } = createWaits(clock)
    const failed = assert.rejects(
      client.invoices.list('cus_ana', {}, { onWait }),
      fails('unexpected_answer', { status: 502, requestId: null, retryAfter: null }),
    )
    const waits = [await pass(() => upstream.requests.length), await pass(() => upstream.requests.length)]
    await failed
    assert.equal(upstream.requests.length, 4)
    for (const [index, { ms }] of waits.entries()) {
      const minMs = 500 * (index + 1)
      assert.ok(ms >= minMs && ms <= minMs + 250, `${ms} ms`)
    }
  })

  test('obeys a Retry-After that is a date', async t => {
    stopClock(t)
    const { origin } = await startUpstream(t, (_, response) => {
      const date = new Date(Date.now() + 600_000).toUTCString()
      response.writeHead(503, { 'retry-after': date }).end()
    })
    await assert.rejects(list(createClient({ baseUrl: origin, token: 'fat_x' })), (error: FaturaError) => {
      // The date has no milliseconds.
      assert.ok([599, 600].includes(Math.floor(error.retryAfter ?? 0)), String(error.retryAfter))
      return true
    })
  })

  test('gives up on a silent service after timeoutMs, or when the call is aborted', async t => {
    const clock = stopClock(t)
    const upstream = await startUpstream(t, () => {})
    const hasty = createClient({ baseUrl: upstream.origin, token: 'fat_x', retries: 0, timeoutMs: 5_000 })
    let isOver = false
    const left = assert.rejects(list(hasty), fails('connection_failed')).finally(() => {
      isOver = true
    })
    await until(() => upstream.requests.length === 1)
    await clock.pass(4_999)
    assert.equal(isOver, false)
    await clock.pass(1)
    await left
    const stop = new AbortController()
    const client = createClient({ baseUrl: upstream.origin, token: 'fat_x' })
    const call = client.invoices.list('cus_ana', {}, { signal: stop.signal })
    stop.abort()
    await assert.rejects(call, { name: 'AbortError' })
    const noToken = createClient({ baseUrl: upstream.origin, token: () => new Promise(() => {}) })
    const signal = AbortSignal.timeout(20)
    const refused = assert.rejects(noToken.invoices.list('cus_ana', {}, { signal }), { name: 'TimeoutError' })
    await clock.pass(20)
    await refused
  })
})
