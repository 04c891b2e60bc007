/** Certified documents' PDFs that come from InvoiceXpress while a client waits: from a good one, and from a bad one. */
import assert from 'node:assert/strict'
import { type RequestListener, request } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Setting } from '../../src/cli/settings/settings.ts'
import {
  createInvoicingSystem,
  type Patience,
  pdfGuardFor,
} from '../../src/invoicexpress/invoicing-system.ts'
import { assertOneLine, createCli, eventually } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import {
  answer,
  apiKey,
  failureOf,
  faults,
  hang,
  type InvoiceXpress,
  startInvoiceXpress,
  withoutOrigin,
} from '../support/invoicexpress-upstream.ts'
import { assertWithin } from '../support/machine-speed.ts'
import { makePdf, secret, sendEndlessly, startUpstream } from '../support/pdf-upstream.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/records.ts'
import { type Answer, assertError, type Service, startService } from '../support/service.ts'
import { refusalOf } from '../support/settings.ts'

const pathOf = (invoice: string) => `/api/v1/client/cus_ana/invoice/${invoice}/ix/download`
const path = pathOf('in_1')
const asked = `/api/pdf/${withDocument.ix_id}.json`
const file = `/files/${secret}.pdf?token=${secret}`

/** So that a slow machine is no fault of InvoiceXpress'. */
const ample: Patience = { budget: 60_000, answer: 30_000 }

const making = answer({}, 202)
const missing = answer({ errors: { error: 'not found' } }, 404)
const pdf = makePdf(100_000)

interface World {
  upstream: InvoiceXpress
  service: Service
  /** Where the PDF is, by the upstream's word. */
  made: RequestListener
  /** What the PDF's address answers from now on. */
  serveFile(listener: RequestListener): void
  /** Each with a token of its own: the downloads of one wait for each other. */
  download(invoice?: string): Promise<Answer>
  /** How often InvoiceXpress was asked for the PDF. */
  questions(): number
}

async function startWorld(t: TestContext, engine: Engine, patience = ample): Promise<World> {
  let sendFile: RequestListener = (_request, response) => void response.end(pdf)
  const upstream = await startInvoiceXpress(t, missing)
  // PDFs lie elsewhere, and are no part of the script.
  const files = await startUpstream(t, (request, response) => sendFile(request, response))
  const options = { ...upstream.options, pdfOrigins: [files.origin] }
  const service = await startService(t, engine, {
    records: [makeRecord({ id: 'in_1', number: '2026-1', ...withDocument })],
    documents: createInvoicingSystem(options, patience),
  })
  t.after(() => {
    assert.doesNotMatch(withoutOrigin(service.logs.join('')), /c4nary|api_key|token=|127\.0\.0\.1/)
    for (const { url, headers } of files.requests)
      assert.doesNotMatch(url + JSON.stringify(headers), /k3y|api_key/)
  })
  return {
    upstream,
    service,
    made: answer({ output: { pdfUrl: files.origin + file } }),
    serveFile: listener => {
      sendFile = listener
    },
    async download(invoice = 'in_1') {
      const got = await service.get(pathOf(invoice), { token: await service.createToken() })
      assert.doesNotMatch(got.text + JSON.stringify(got.headers), /c4nary|127\.0\.0\.1/)
      return got
    },
    questions: () => upstream.requests.length,
  }
}

async function measure<T>(act: () => Promise<T>): Promise<{ took: number; result: T }> {
  const start = performance.now()
  const result = await act()
  return { took: performance.now() - start, result }
}

function assertPdf({ status, headers, text }: Answer): void {
  assert.equal(status, 200, text)
  assert.equal(headers['content-type'], 'application/pdf')
  assert.equal(headers['content-length'], String(pdf.length))
  assert.equal(headers['content-disposition'], 'attachment; filename="2026-1.pdf"')
  assert.equal(headers['cache-control'], 'private, no-store')
  assert.equal(text, pdf.toString())
}

const [anyEngine] = engines as readonly [Engine]

for (const engine of engines)
  describe(`PDFs from InvoiceXpress on ${engine.name}`, { concurrency: 4 }, () => {
    test('the PDF that is made comes byte for byte, from a new address each time', async t => {
      const { upstream, made, download } = await startWorld(t, engine)
      upstream.script(made)
      assertPdf(await download())
      assertPdf(await download())
      assert.deepEqual(upstream.paths, [asked, asked])
      assert.equal(new URL(upstream.requests[0]?.url ?? '', upstream.origin).search, `?api_key=${apiKey}`)
    })

    test('HEAD has the headers, and no body', async t => {
      const { upstream, made, service } = await startWorld(t, engine)
      upstream.script(made)
      const { status, headers, text } = await service.get(path, { method: 'HEAD' })
      assert.deepEqual([status, headers['content-length'], text], [200, String(pdf.length), ''])
    })

    test('a draft is not asked for', async t => {
      const { service, questions } = await startWorld(t, engine)
      await service.save(makeRecord({ id: 'in_1', ...withDocument, ix_status: 'draft' }))
      assertError(await service.get(path), 409, 'document_not_issued')
      assert.equal(questions(), 0)
    })
  })

describe('InvoiceXpress while a client waits', { concurrency: 8 }, () => {
  test('unless told otherwise, ten seconds are waited, asking ever less often', async t => {
    const upstream = await startInvoiceXpress(t, making)
    const { openPdf } = createInvoicingSystem(upstream.options)
    const { took, result } = await measure(() => failureOf(openPdf(1, new AbortController().signal)))
    assert.deepEqual([result.failure, result.retryAfter], ['not_ready', 5])
    assert.ok(took >= 9_900, `${took} ms`)
    assertWithin(took, 20_000)
    // Eight, or fewer where some are late.
    assert.ok(upstream.requests.length >= 5 && upstream.requests.length <= 8, `${upstream.requests.length}`)
  })

  describe('fatura serve with InvoiceXpress', { concurrency: 3 }, () => {
    const invoice = makeInvoice({ id: 'in_1', number: '2026-1', ...withDocument })

    test('serves PDFs that are InvoiceXpress’, and the key is in no log line', async t => {
      const upstream = await startInvoiceXpress(t, making)
      const cli = await createCli(t)
      await cli.load(invoice)
      const token = await cli.createToken()
      const env = { INVOICEXPRESS_API_KEY: apiKey, INVOICEXPRESS_API_BASE: upstream.origin }
      const api = await cli.serve([], { env })
      const served: RequestListener = (_request, response) => void response.end(pdf)
      upstream.script(making, answer({ output: { pdfUrl: upstream.origin + file } }), served)
      const got = await api.get(path, token)
      assert.deepEqual([got.status, got.text], [200, pdf.toString()])
      upstream.script(answer({ errors: { error: apiKey } }, 401))
      assert.equal((await api.get(path, token)).status, 502)
      const outcome = await api.stop()
      assert.deepEqual([outcome.code, outcome.stderr], [0, ''])
      assert.match(outcome.stdout, /InvoiceXpress refused the key/)
      assert.doesNotMatch(outcome.stdout, /c4nary|api_key/)
    })

    test('without a key there are none', async t => {
      const cli = await createCli(t)
      await cli.load(invoice)
      const token = await cli.createToken()
      const api = await cli.serve([], { env: { INVOICEXPRESS_ACCOUNT: 'acme' } })
      const got = await api.get(path, token)
      assert.deepEqual([got.status, got.json.error.code], [502, 'upstream_failed'])
    })

    test('a wrong setting stops the start with one line that names it and shows no key', async t => {
      const cli = await createCli(t)
      await cli.load(invoice)
      const wrong: [setting: Setting, value: string][] = [
        ['INVOICEXPRESS_API_KEY', 'c4nary k3y'],
        ['INVOICEXPRESS_API_KEY', 'c4nary\nk3y'],
        ['INVOICEXPRESS_ACCOUNT', 'Acme'],
        ['INVOICEXPRESS_ACCOUNT', 'acme.app'],
        ['INVOICEXPRESS_ACCOUNT', 'c4nary@evil/'],
        ['INVOICEXPRESS_API_BASE', 'c4nary'],
        ['INVOICEXPRESS_API_BASE', 'ftp://c4nary'],
        ['INVOICEXPRESS_API_BASE', 'https://c4nary@acme.app.invoicexpress.com'],
        ['INVOICEXPRESS_API_BASE', 'https://acme.app.invoicexpress.com/api'],
        ['INVOICEXPRESS_API_BASE', 'https://acme.app.invoicexpress.com?api_key=c4nary'],
        ['INVOICEXPRESS_API_BASE', 'http://acme.app.invoicexpress.com'],
        ['INVOICEXPRESS_PDF_ORIGINS', 'https://*'],
        ['INVOICEXPRESS_PDF_ORIGINS', 'https://files.example/c4nary'],
        ['INVOICEXPRESS_PDF_ORIGINS', 'https://files.example,'],
      ]
      for (const [setting, value] of wrong) {
        const told = refusalOf(setting, value)
        assert.ok(told.startsWith(`${setting} `), told)
        assert.doesNotMatch(told, /c4nary/)
      }
      const start = async (setting: Setting, value: string) => {
        const env = { INVOICEXPRESS_ACCOUNT: 'acme', INVOICEXPRESS_API_KEY: apiKey, [setting]: value }
        const outcome = await cli.run(['serve', '--port', '0'], { env })
        assertOneLine(outcome, new RegExp(`^fatura: ${setting} `))
        assert.doesNotMatch(outcome.stderr, /c4nary/)
        return outcome.stderr
      }
      // Well-formed, but needed beside the key.
      await start('INVOICEXPRESS_ACCOUNT', '')
      const firstOfEach = new Map(wrong.toReversed())
      for (const [setting, value] of firstOfEach)
        assert.equal(await start(setting, value), `fatura: ${refusalOf(setting, value)}\n`)
    })
  })

  test('one that is never made is not ready within the budget, and that is no fault', async t => {
    // A fifth question would come at 3,750 ms; the fourth has time to be late.
    const patience = { budget: 3_500, answer: 1_500 }
    const { upstream, made, download, questions } = await startWorld(t, anyEngine, patience)
    upstream.script(making)
    const all = await Promise.all(Array.from({ length: 6 }, () => measure(() => download())))
    for (const { took, result } of all) {
      assertError(result, 503, 'document_not_ready')
      assert.equal(result.headers['retry-after'], '5')
      assert.ok(took >= 3_450, `${took} ms`)
      assertWithin(took, 10_000)
    }
    assert.equal(questions(), 6 * 4, 'at 0, 250, 750 and 1,750 ms')
    upstream.script(made)
    assertPdf(await download())
  })

  test('one that is being made when InvoiceXpress begins to hang is a fault, before the budget ends', async t => {
    const patience = { budget: 60_000, answer: 2_000 }
    const { upstream, made, download } = await startWorld(t, anyEngine, patience)
    upstream.script(making, hang)
    const { took, result } = await measure(() => download())
    assertError(result, 504, 'upstream_timeout')
    assert.ok(took < patience.budget, `${took} ms`)
    upstream.script(made)
    assertPdf(await download())
  })

  test('a question that the budget’s end cuts short is no fault: the PDF is not ready', async t => {
    const patience = { budget: 1_500, answer: 1_450 }
    const { upstream, service, made, download } = await startWorld(t, anyEngine, patience)
    const invoices = Array.from({ length: 6 }, (_, index) => `in_${index + 10}`)
    await service.save(
      ...invoices.map((id, index) => makeRecord({ id, ...withDocument, ix_id: 1_000 + index })),
    )
    // Of each PDF, the first question is answered and the next is not.
    upstream.script((request, response) => {
      const times = upstream.requests.filter(({ url }) => url === request.url).length
      const listener = times === 1 ? making : hang
      listener(request, response)
    })
    for (const got of await Promise.all(invoices.map(invoice => download(invoice))))
      assertError(got, 503, 'document_not_ready')
    upstream.script(made)
    assertPdf(await download())
  })

  for (const [name, { listener, failure }] of Object.entries(faults))
    if (failure === 'timeout')
      test(`a fault that lasts (${name}) is a time-out, and passes`, async t => {
        // What is sound comes within this on a busy machine as well.
        const patience = { budget: 6_000, answer: 3_000 }
        const { upstream, made, download } = await startWorld(t, anyEngine, patience)
        upstream.script(listener)
        assertError(await download(), 504, 'upstream_timeout')
        upstream.script(made)
        assertPdf(await download())
      })

  test('every other fault is a JSON error, and passes', async t => {
    const { upstream, made, download } = await startWorld(t, anyEngine)
    for (const { listener, failure } of Object.values(faults)) {
      if (failure === 'timeout') continue
      upstream.script(listener)
      assertError(await download(), 502, 'upstream_failed')
      upstream.script(made)
      assertPdf(await download())
    }
  })

  test('a client that goes away ends the asking at once, and that is nobody’s fault', async t => {
    const { upstream, made, service, download, questions } = await startWorld(t, anyEngine)
    const headers = { authorization: `Bearer ${await service.createToken()}` }
    const leave = async () => {
      const before = questions()
      const outgoing = request({ host: '127.0.0.1', port: service.port, path, headers, agent: false })
      outgoing.on('error', () => {})
      outgoing.end()
      await eventually('InvoiceXpress is asked', () => questions() > before)
      outgoing.destroy()
    }
    upstream.script(making)
    for (let time = 0; time < 3; time++) await leave()
    await sleep(50)
    const before = questions()
    await sleep(700)
    assert.equal(questions(), before, 'it was asked again')

    upstream.script(hang)
    for (let time = 0; time < 6; time++) await leave()
    await eventually('the questions are let go', () => upstream.open <= 1)
    upstream.script(made)
    assertPdf(await download())
    assert.doesNotMatch(withoutOrigin(service.logs.join('')), /"level":[45]0/)
  })

  test('one that is being made is waited for', async t => {
    const { upstream, made, download, questions } = await startWorld(t, anyEngine)
    upstream.script(making, making, made)
    const { took, result } = await measure(() => download())
    assertPdf(result)
    assert.equal(questions(), 3)
    assert.ok(took >= 740, `${took} ms for pauses of 250 and 500`)
  })

  test('a document that InvoiceXpress no longer has is not found, and one it makes no PDF of is a failure: no faults', async t => {
    const { upstream, made, download } = await startWorld(t, anyEngine)
    for (let time = 0; time < 7; time++) {
      upstream.script(missing)
      assertError(await download(), 404, 'document_not_found')
      upstream.script(answer({ errors: [{ error: 'no' }] }, 422))
      assertError(await download(), 502, 'upstream_failed')
    }
    upstream.script(made)
    assertPdf(await download())
  })

  test('an answer that holds no address of a PDF, or a refusal, is a failure', async t => {
    const { upstream, made, download } = await startWorld(t, anyEngine)
    const wrong = [
      answer({ output: {} }),
      answer({ output: { pdfUrl: null } }),
      answer({ output: { pdfUrl: '' } }),
      answer({ output: { pdfUrl: 'no address' } }),
      answer({ output: { pdfUrl: `file:///${secret}` } }),
      answer({ output: [{ pdfUrl: upstream.origin }] }),
      answer({ output: { pdfUrl: upstream.origin }, errors: [] }),
      answer({ errors: { error: apiKey } }, 401),
      answer({ error: { message: apiKey } }, 403),
      answer('', 302, { location: `${upstream.origin}/elsewhere?api_key=${apiKey}` }),
      answer('', 204),
    ]
    for (const listener of wrong) {
      upstream.script(listener)
      assertError(await download(), 502, 'upstream_failed')
      upstream.script(made)
      assertPdf(await download())
    }
    assert.ok(!upstream.paths.includes('/elsewhere'), 'a redirect was followed')
  })

  test('a refused key is told in the log, in our words', async t => {
    const { upstream, service, download } = await startWorld(t, anyEngine)
    upstream.script(answer({ errors: { error: 'no' } }, 401))
    assertError(await download(), 502, 'upstream_failed')
    assert.match(service.logs.join(''), /InvoiceXpress refused the key/)
  })

  test('a PDF at a foreign origin is a failure, and nothing is sent there', async t => {
    const { upstream, download } = await startWorld(t, anyEngine)
    const foreign = await startUpstream(t, (_request, response) => void response.end(pdf))
    const at = new URL(foreign.origin)
    for (const pdfUrl of [
      foreign.origin + file,
      `http://localhost:${at.port}${file}`,
      `http://user:password@127.0.0.1:${at.port}${file}`,
      `https://127.0.0.1:${at.port}${file}`,
    ]) {
      upstream.script(answer({ output: { pdfUrl } }))
      assertError(await download(), 502, 'upstream_failed')
    }
    assert.equal(foreign.connections, 0)
  })

  test('a PDF’s address that fails is told as that', async t => {
    const { upstream, made, serveFile, download } = await startWorld(t, anyEngine)
    const foreign = await startUpstream(t, (_request, response) => void response.end(pdf))
    const cases: [RequestListener, status: number, code: string][] = [
      [(_request, response) => void response.writeHead(410).end(), 404, 'document_not_found'],
      [(_request, response) => void response.writeHead(500).end(secret), 502, 'upstream_failed'],
      [(_request, response) => void response.end('<html>'), 502, 'upstream_failed'],
      [(_request, response) => void response.destroy(), 502, 'upstream_failed'],
      [
        (_request, response) => void response.writeHead(302, { location: foreign.origin }).end(),
        502,
        'upstream_failed',
      ],
    ]
    upstream.script(made)
    for (const [listener, status, code] of cases) {
      serveFile(listener)
      assertError(await download(), status, code)
    }
    assert.equal(foreign.connections, 0)
    for (const listener of [
      ((_request, response) => {
        response.writeHead(200, { 'content-length': 2_000 }).write(makePdf(1_000))
        setTimeout(() => response.destroy(), 30)
      }) as RequestListener,
      ((_request, response) => sendEndlessly(response)) as RequestListener,
    ]) {
      serveFile(listener)
      await assert.rejects(download(), { code: 'ECONNRESET' }, 'what is not whole does not look whole')
    }
  })
})

describe('InvoiceXpress that is left alone for a while', () => {
  test('after five faults in a row InvoiceXpress is left alone for ten seconds', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { upstream, made, download, questions } = await startWorld(t, anyEngine)
    upstream.script(answer('', 500))
    for (let time = 0; time < 8; time++) assertError(await download(), 502, 'upstream_failed')
    assert.equal(questions(), 5)
    upstream.script(made)
    t.mock.timers.tick(9_000)
    assertError(await download(), 502, 'upstream_failed')
    t.mock.timers.tick(1_001)
    assertPdf(await download())
    assert.equal(questions(), 6)
  })

  test('after 429 it is not asked before the pause is over', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { upstream, made, download, questions } = await startWorld(t, anyEngine)
    for (const [headers, pause] of [
      [{ 'retry-after': '7' }, 7_000],
      [{}, 15_000],
    ] as const) {
      const before = questions()
      upstream.script(answer('', 429, headers), made)
      assertError(await download(), 502, 'upstream_failed')
      t.mock.timers.tick(pause - 1)
      assertError(await download(), 502, 'upstream_failed')
      assert.equal(questions(), before + 1, 'asked too early')
      t.mock.timers.tick(1)
      assertPdf(await download())
    }
  })
})

test('InvoiceXpress itself may lead to its own hosts alone, unless told otherwise, and to no private address', () => {
  const options = { account: 'acme', apiKey, base: 'https://acme.app.invoicexpress.com' }
  assert.deepEqual(pdfGuardFor(options), { origins: ['https://*.invoicexpress.com'], allowPrivate: false })
  const pdfOrigins = ['https://files.example']
  assert.deepEqual(pdfGuardFor({ ...options, pdfOrigins }), { origins: pdfOrigins, allowPrivate: false })
  const base = 'http://127.0.0.1:4011'
  assert.deepEqual(pdfGuardFor({ ...options, base }), { origins: [base], allowPrivate: true })
})
