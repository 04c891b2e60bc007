/** The download routes with the guarded client behind them: what a client gets of a good upstream and of a bad one. */
import assert from 'node:assert/strict'
import { type ClientRequest, type IncomingMessage, type RequestListener, request } from 'node:http'
import { Readable } from 'node:stream'
import { after, describe, type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { PdfGuard } from '../../../src/sources/pdf/fetch-pdf.ts'
import { type Pdf, SourceError } from '../../../src/sources/source.ts'
import { eventually } from '../../support/clients/cli.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import {
  get,
  makePdf,
  secret,
  sendEndlessly,
  startUpstream,
  type Upstream,
  untilHeld,
} from '../../support/upstreams/pdf-upstream.ts'
import { makeRecord, withDocument } from '../../support/worlds/records.ts'
import {
  type Answer,
  assertError,
  type Service,
  shareService,
  startService,
} from '../../support/worlds/service.ts'
import { settle, stopClock, until } from '../../support/worlds/stopped-clock.ts'

const megabyte = 1024 * 1024
const kinds = ['ix', 'payments'] as const
const path = (kind: string) => `/api/v1/client/cus_ana/invoice/in_1/${kind}/download`

type OpenPdf = (signal: AbortSignal) => Promise<Pdf>

/** Of a service with one way to open a PDF, for both systems. */
const optionsFor = (openPdf: OpenPdf) => ({
  records: [makeRecord({ id: 'in_1', number: '2026-1', ...withDocument })],
  payments: { fetchLines: async () => null, openPdf: (_id: string, signal: AbortSignal) => openPdf(signal) },
  documents: { openPdf: (_id: number, signal: AbortSignal) => openPdf(signal) },
})

const assertSecret = ({ logs }: Service) => assert.doesNotMatch(logs.join(''), /c4nary|token=|127\.0\.0\.1/)

/** One service for a suite, which from each call on opens PDFs in the way that is given; its log begins there. */
function shareDownloads(engine: Engine) {
  let current: OpenPdf = () => assert.fail('no way to open a PDF is given')
  const service = shareService(
    engine,
    optionsFor(signal => current(signal)),
  )
  after(() => assertSecret(service()))
  return (openPdf: OpenPdf): Service => {
    current = openPdf
    const { logs } = service()
    const begin = logs.length
    return Object.create(service(), { logs: { get: () => logs.slice(begin) } })
  }
}

/** A request whose answer the caller reads in its own way. */
async function open(
  service: Service,
): Promise<{ outgoing: ClientRequest; incoming: Promise<IncomingMessage> }> {
  const headers = { authorization: `Bearer ${await service.createToken()}` }
  const options = { port: service.port, path: path('payments'), headers, agent: false } as const
  const outgoing = request({ host: '127.0.0.1', ...options })
  const incoming = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
  })
  incoming.catch(() => {})
  outgoing.end()
  return { outgoing, incoming }
}

/** With a token of its own: the downloads of one wait for each other. */
async function download(service: Service, method = 'GET'): Promise<Answer> {
  return service.get(path('payments'), { method, token: await service.createToken() })
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const brokenOff = (service: Service) =>
  service.logs.filter(line => line.includes('"download stopped before its end"'))

/** Starts an upstream that answers so; the service then opens PDFs there. */
function beforeUpstream(serve: (openPdf: OpenPdf) => Service) {
  return async (t: TestContext, answer: RequestListener, guard: Partial<PdfGuard> = {}) => {
    const upstream = await startUpstream(t, answer)
    return { upstream, service: serve(signal => get(upstream, { signal, ...guard })) }
  }
}

for (const engine of engines) {
  describe(`downloaded PDFs on ${engine.name}`, () => {
    const serveUpstream = beforeUpstream(shareDownloads(engine))

    test('come whole, and the client’s token is not sent to the upstream', async t => {
      const pdf = makePdf(200_000)
      const { upstream, service } = await serveUpstream(t, (_request, response) => {
        response.setHeader('set-cookie', 'session=1')
        response.end(pdf)
      })
      for (const kind of kinds) {
        const { status, headers, text } = await service.get(path(kind), { headers: { cookie: 'a=1' } })
        assert.deepEqual(
          [status, headers['content-type'], headers['content-length'], headers['set-cookie']],
          [200, 'application/pdf', '200000', undefined],
        )
        assert.equal(text, pdf.toString())
      }
      for (const { headers } of upstream.requests)
        assert.deepEqual(Object.keys(headers).sort(), [
          'accept',
          'accept-encoding',
          'connection',
          'host',
          'user-agent',
        ])
      assert.deepEqual(brokenOff(service), [])
    })

    test('have the same headers for HEAD as for GET, without reading the PDF', async t => {
      const { upstream, service } = await serveUpstream(t, (_request, response) => {
        response.writeHead(200, { 'content-length': 25 * megabyte })
        sendEndlessly(response)
      })
      const head = await service.get(path('payments'), { method: 'HEAD' })
      await eventually('the upstream is let go', () => upstream.open === 0)
      const { outgoing, incoming } = await open(service)
      const { statusCode, headers } = await incoming
      outgoing.destroy()
      const comparable = ({
        date,
        connection,
        'keep-alive': _,
        'request-id': id,
        ...rest
      }: IncomingMessage['headers']) => rest
      assert.deepEqual([head.status, comparable(head.headers)], [statusCode, comparable(headers)])
      assert.equal(head.headers['content-length'], String(25 * megabyte))
      assert.equal(head.text, '')
      assert.deepEqual(brokenOff(service), [])

      const chunked = await serveUpstream(t, (_request, response) => sendEndlessly(response))
      const unsized = await chunked.service.get(path('payments'), { method: 'HEAD' })
      assert.deepEqual([unsized.status, unsized.headers['content-length']], [200, undefined])
      await eventually('the upstream is let go', () => chunked.upstream.open === 0)
    })
  })
}

describe('a PDF download with a failing upstream or client', {
  timeout: 600_000,
}, () => {
  const [engine] = engines as readonly [Engine]
  const serve = shareDownloads(engine)
  const serveUpstream = beforeUpstream(serve)

  test('gives a JSON error without the URL for any failure before the first byte', async t => {
    const answers: [RequestListener, number, string][] = [
      [(_request, response) => void response.end('<html>%PDF-'), 502, 'upstream_failed'],
      [(_request, response) => void response.end(), 502, 'upstream_failed'],
      [(_request, response) => void response.writeHead(410).end(), 404, 'document_not_found'],
      [(_request, response) => void response.writeHead(500).end(secret), 502, 'upstream_failed'],
      [(_request, response) => void response.destroy(), 502, 'upstream_failed'],
      [() => {}, 504, 'upstream_timeout'],
      [(_request, response) => void response.write('%PD'), 504, 'upstream_timeout'],
    ]
    for (const [answer, status, code] of answers) {
      const { service } = await serveUpstream(t, answer, status === 504 ? { deadlineMs: 150 } : {})
      const refusal = await download(service)
      assertError(refusal, status, code)
      assert.equal(refusal.headers['content-disposition'], undefined)
      assert.doesNotMatch(refusal.text + JSON.stringify(refusal.headers), /c4nary|127\.0/)
      assert.equal((await download(service, 'HEAD')).status, status)
    }
    const service = serve(async () => ({
      size: 100,
      body: new Readable({
        read() {
          this.destroy(new SourceError('failed', 'broken before its first byte'))
        },
      }),
    }))
    const refusal = await service.get(path('payments'))
    assertError(refusal, 502, 'upstream_failed')
    assert.equal(refusal.headers['content-disposition'], undefined)
  })

  test('breaks the connection after a failure within the PDF, so that the PDF never looks whole', async t => {
    const begun = (length: number | null): RequestListener => {
      return (_request, response) => {
        if (length !== null) response.setHeader('content-length', length)
        response.write(makePdf(1_000))
      }
    }
    const endless: RequestListener = (_request, response) => sendEndlessly(response)
    const clock = stopClock(t)
    const cut = ({ requests }: Upstream) => requests[0]?.socket.destroy()
    for (const [answer, guard, end] of [
      [begun(2_000), {}, cut],
      [begun(null), {}, cut],
      [endless, { maximumBytes: megabyte }, () => {}],
      [begun(null), { deadlineMs: 20_000 }, () => clock.pass(20_000)],
    ] as const) {
      const { upstream, service } = await serveUpstream(t, answer, guard)
      const { incoming } = await open(service)
      const received = await incoming
      assert.equal(received.statusCode, 200)
      await end(upstream)
      await assert.rejects(received.resume().toArray(), { code: 'ECONNRESET' })
      await until(() => upstream.open === 0 && brokenOff(service).length === 1)
    }
  })

  test('ends the upstream’s transfer when the client leaves', async t => {
    const { upstream, service } = await serveUpstream(t, () => {})
    const waiting = await open(service)
    await eventually('the upstream is asked', () => upstream.requests.length === 1)
    waiting.outgoing.destroy()
    await eventually('the upstream is let go', () => upstream.open === 0)

    const endless = await serveUpstream(t, (_request, response) => sendEndlessly(response))
    const reading = await open(endless.service)
    await reading.incoming
    reading.outgoing.destroy()
    await eventually('the upstream is let go', () => endless.upstream.open === 0)
    await settle()
    assert.doesNotMatch(service.logs.join(''), /"level":[45]0/, 'a client’s leaving is nobody’s fault')
  })

  test('pauses the upstream when the reader stops, and holds only small buffers', async t => {
    const { upstream, service } = await serveUpstream(t, (_request, response) => sendEndlessly(response), {
      maximumBytes: 64 * megabyte,
    })
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    const { outgoing, incoming } = await open(service)
    await incoming
    const sent = await untilHeld(upstream)
    // The rest of the bytes lies in the kernel's buffers of two connections.
    assert.ok(sent < 32 * megabyte, `${sent}`)
    // Released buffers may be collected a little later; held ones would stay.
    await eventually('less than 2 MB are held in this process', () => {
      collectGarbage()
      return process.memoryUsage().arrayBuffers - before < 2 * megabyte
    })
    outgoing.destroy()
    await eventually('the upstream is let go', () => upstream.open === 0)
  })

  test('is answered at the deadline when the source ignores the abort', async t => {
    let deliver: (pdf: Pdf) => void = () => {}
    let asked = false
    // One of its own: time stands still for it.
    const service = await startService(
      t,
      engine,
      optionsFor(() => {
        asked = true
        return new Promise(resolve => {
          deliver = resolve
        })
      }),
    )
    t.after(() => assertSecret(service))
    await service.get('/ready')
    const clock = stopClock(t)
    let isAnswered = false
    const answer = service.get(path('payments')).finally(() => {
      isAnswered = true
    })
    await until(() => asked)
    await clock.pass(29_999)
    assert.equal(isAnswered, false)
    await clock.pass(1)
    assertError(await answer, 504, 'upstream_timeout')
    const body = Readable.from([makePdf(100)])
    deliver({ body, size: null })
    await until(() => body.destroyed)
  })
})
