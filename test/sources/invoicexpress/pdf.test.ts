/** Certified documents' PDFs that come from InvoiceXpress while a client waits: from a good one, and from a bad one. */
import assert from 'node:assert/strict'
import { type RequestListener, request } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { invoiceXpressOf } from '../../../src/cli/settings/connections.ts'
import type { Setting } from '../../../src/cli/settings/settings.ts'
import { openPdfSources } from '../../../src/cli/start/open-pdf-sources.ts'
import {
  createInvoicingSystem,
  type Patience,
  pdfGuardFor,
} from '../../../src/sources/invoicexpress/invoicing-system.ts'
import { assertOneLine, createCli } from '../../support/clients/cli.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import {
  answer,
  apiKey,
  countCalls,
  faults,
  hang,
  type InvoiceXpress,
  startInvoiceXpress,
  withoutOrigin,
} from '../../support/upstreams/invoicexpress-upstream.ts'
import { makePdf, secret, startUpstream } from '../../support/upstreams/pdf-upstream.ts'
import { makeInvoice, makeRecord, withDocument } from '../../support/worlds/records.ts'
import { type Answer, assertError, type Service, startService } from '../../support/worlds/service.ts'
import { refusalOf } from '../../support/worlds/settings.ts'
import { stopClock, until } from '../../support/worlds/stopped-clock.ts'

const pathOf = (invoice: string) => `/api/v1/client/cus_ana/invoice/${invoice}/ix/download`
const path = pathOf('in_1')
const asked = `/api/pdf/${withDocument.ix_id}.json`
const file = `/files/${secret}.pdf?token=${secret}`

/** Far longer than anything here takes. */
const ample: Patience = { budget: 120_000, answer: 60_000 }

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

async function startWorld(t: TestContext, engine: Engine, patience: Patience | null = ample): Promise<World> {
  let sendFile: RequestListener = (_request, response) => void response.end(pdf)
  const upstream = await startInvoiceXpress(t, missing)
  // PDFs lie elsewhere, and are no part of the script.
  const files = await startUpstream(t, (request, response) => sendFile(request, response))
  const options = { ...upstream.options, pdfOrigins: [files.origin] }
  const service = await startService(t, engine, {
    records: [makeRecord({ id: 'in_1', number: '2026-1', ...withDocument })],
    documents: createInvoicingSystem(options, patience ?? undefined),
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

function assertPdf({ status, headers, text }: Answer): void {
  assert.equal(status, 200, text)
  assert.equal(headers['content-type'], 'application/pdf')
  assert.equal(headers['content-length'], String(pdf.length))
  assert.equal(headers['content-disposition'], 'attachment; filename="2026-1 in_1.pdf"')
  assert.equal(headers['cache-control'], 'private, no-store')
  assert.equal(text, pdf.toString())
}

const [anyEngine] = engines as readonly [Engine]

for (const engine of engines)
  describe(`PDFs from InvoiceXpress on ${engine.name}`, { concurrency: 4 }, () => {
    test('are delivered byte for byte, from a new address each time', async t => {
      const { upstream, made, download } = await startWorld(t, engine)
      upstream.script(made)
      assertPdf(await download())
      assertPdf(await download())
      assert.deepEqual(upstream.paths, [asked, asked])
      assert.equal(new URL(upstream.requests[0]?.url ?? '', upstream.origin).search, `?api_key=${apiKey}`)
    })

    test('have the same headers for HEAD as for GET, without a body', async t => {
      const { upstream, made, service } = await startWorld(t, engine)
      upstream.script(made)
      const { status, headers, text } = await service.get(path, { method: 'HEAD' })
      assert.deepEqual([status, headers['content-length'], text], [200, String(pdf.length), ''])
    })

    test('are not requested for a draft', async t => {
      const { service, questions } = await startWorld(t, engine)
      await service.save(makeRecord({ id: 'in_1', ...withDocument, ix_status: 'draft' }))
      assertError(await service.get(path), 409, 'document_not_issued')
      assert.equal(questions(), 0)
    })
  })

describe('InvoiceXpress and its PDFs', { concurrency: 8 }, () => {
  describe('fatura serve with InvoiceXpress', { concurrency: 2 }, () => {
    const invoice = makeInvoice({ id: 'in_1', number: '2026-1', ...withDocument })

    test('delivers InvoiceXpress’ PDFs, and logs no key', async t => {
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

    test('refuses a wrong setting with one line that names the setting and hides the key', async t => {
      const cli = await createCli(t)
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
      const [[setting, value] = assert.fail()] = wrong
      const outcome = await cli.run(['serve', '--port', '0'], { env: { [setting]: value } })
      assertOneLine(outcome)
      assert.equal(outcome.stderr, `fatura: ${refusalOf(setting, value)}\n`)
    })
  })

  test('any fault except a time-out gives a JSON error, and the next request succeeds', async t => {
    const { upstream, made, download } = await startWorld(t, anyEngine)
    for (const { listener, failure } of Object.values(faults)) {
      if (failure === 'timeout') continue
      upstream.script(listener)
      assertError(await download(), 502, 'upstream_failed')
      upstream.script(made)
      assertPdf(await download())
    }
  })

  test('a missing document gives 404, a refused PDF 502, and neither counts as a fault', async t => {
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

  test('an answer without a PDF’s address, or a refusal, is a failure', async t => {
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

  test('a refused key is logged in our own words', async t => {
    const { upstream, service, download } = await startWorld(t, anyEngine)
    upstream.script(answer({ errors: { error: 'no' } }, 401))
    assertError(await download(), 502, 'upstream_failed')
    assert.match(service.logs.join(''), /InvoiceXpress refused the key/)
  })

  test('a PDF at a foreign origin is a failure, and that origin gets no request', async t => {
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

  test('a failing PDF address is reported as missing or failed', async t => {
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
  })
})

// On a clock that stands still, what is never over hangs.
describe('a PDF that InvoiceXpress is still making', { timeout: 600_000 }, () => {
  /** With a clock that stands still; `calls` are those to InvoiceXpress, as each is answered. */
  async function startStill(t: TestContext) {
    const world = await startWorld(t, anyEngine, null)
    const calls = countCalls(t)
    const clock = stopClock(t)
    return {
      ...world,
      calls,
      clock,
      /** A download, and whether it is over. */
      begin(invoice?: string) {
        const begun = { isOver: false, answer: world.download(invoice) }
        const end = () => {
          begun.isOver = true
        }
        begun.answer.then(end, end)
        return begun
      },
    }
  }

  test('is requested for ten seconds ever less often, and then reported as not ready', async t => {
    const { upstream, made, download, begin, calls, clock, questions } = await startStill(t)
    upstream.script(making)
    const all = Array.from({ length: 6 }, () => begin())
    let asked = 0
    for (const moment of [0, 250, 750, 1_750, 3_750, 5_750, 7_750, 9_750]) {
      if (moment > 0) await clock.pass(moment - 1 - clock.passedMs)
      assert.equal(questions(), asked, `before ${moment} ms`)
      await clock.pass(moment - clock.passedMs)
      asked += all.length
      await until(() => calls.length === asked)
      assert.equal(questions(), asked, `at ${moment} ms`)
    }
    await clock.pass(9_999 - clock.passedMs)
    assert.ok(all.every(({ isOver }) => !isOver))
    await clock.pass(1)
    for (const { answer } of all) {
      const refusal = await answer
      assertError(refusal, 503, 'document_not_ready')
      assert.equal(refusal.headers['retry-after'], '5')
    }
    assert.equal(questions(), asked)
    upstream.script(made)
    assertPdf(await download())
  })

  test('is delivered when it becomes ready in time', async t => {
    const { upstream, made, begin, calls, clock, questions } = await startStill(t)
    upstream.script(making, making, made)
    const { answer } = begin()
    for (const [index, pauseMs] of [250, 500].entries()) {
      await until(() => calls.length === index + 1)
      await clock.pass(pauseMs)
    }
    assertPdf(await answer)
    assert.equal(questions(), 3)
  })

  test('gives a time-out when one request has no answer for five seconds', async t => {
    const { upstream, made, download, begin, calls, clock, questions } = await startStill(t)
    upstream.script(making, hang)
    const begun = begin()
    await until(() => calls.length === 1)
    await clock.pass(250)
    await until(() => questions() === 2)
    await clock.pass(4_999)
    assert.equal(begun.isOver, false)
    await clock.pass(1)
    assertError(await begun.answer, 504, 'upstream_timeout')
    upstream.script(made)
    assertPdf(await download())
  })

  test('is reported as not ready when the last request has no answer in time, which counts as no fault', async t => {
    const { upstream, service, made, download, begin, calls, clock, questions } = await startStill(t)
    const invoices = Array.from({ length: 6 }, (_, index) => `in_${index + 10}`)
    await service.save(
      ...invoices.map((id, index) => makeRecord({ id, ...withDocument, ix_id: 1_000 + index })),
    )
    // The last question of each PDF has no answer.
    const moments = [250, 500, 1_000, 2_000, 2_000, 2_000, 2_000]
    const last = invoices.length * moments.length
    upstream.script((request, response) => {
      const listener = questions() <= last ? making : hang
      listener(request, response)
    })
    const all = invoices.map(begin)
    for (const [index, pauseMs] of moments.entries()) {
      await until(() => calls.length === invoices.length * (index + 1))
      await clock.pass(pauseMs)
    }
    await until(() => questions() === last + invoices.length)
    await clock.pass(249)
    assert.ok(all.every(({ isOver }) => !isOver))
    await clock.pass(1)
    for (const { answer } of all) assertError(await answer, 503, 'document_not_ready')
    upstream.script(made)
    assertPdf(await download())
  })

  for (const [name, { listener, failure }] of Object.entries(faults))
    if (failure === 'timeout')
      test(`gives a time-out after five seconds of ${name}, and is delivered afterwards`, async t => {
        const { upstream, made, download, begin, clock, questions } = await startStill(t)
        upstream.script(listener)
        const begun = begin()
        await until(() => questions() === 1)
        await clock.pass(4_999)
        assert.equal(begun.isOver, false)
        await clock.pass(1)
        assertError(await begun.answer, 504, 'upstream_timeout')
        upstream.script(made)
        assertPdf(await download())
      })

  test('is no longer requested when its client leaves, which counts as no fault', async t => {
    const { upstream, made, service, download, calls, clock, questions } = await startStill(t)
    const ask = async () => {
      const headers = { authorization: `Bearer ${await service.createToken()}` }
      const outgoing = request({ host: '127.0.0.1', port: service.port, path, headers, agent: false })
      outgoing.on('error', () => {})
      return outgoing.end()
    }
    upstream.script(making)
    const leaving = [await ask(), await ask(), await ask()]
    await until(() => calls.length === 3)
    for (const outgoing of leaving) outgoing.destroy()
    // What is answered later is read later than that they left.
    await service.get('/live')
    await clock.pass(10_000)
    assert.equal(questions(), 3, 'it was asked again')

    upstream.script(hang)
    for (let time = 0; time < 6; time++) {
      const before = questions()
      const outgoing = await ask()
      await until(() => questions() > before)
      outgoing.destroy()
    }
    await until(() => upstream.open <= 1)
    upstream.script(made)
    assertPdf(await download())
    assert.doesNotMatch(withoutOrigin(service.logs.join('')), /"level":[45]0/)
  })
})

describe('the breaker for InvoiceXpress', { timeout: 600_000 }, () => {
  test('sends no requests for ten seconds after five faults in a row', async t => {
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

  test('sends no requests before the pause of a 429 is over', async t => {
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

test('InvoiceXpress is not connected without a key, and a key without an account is refused', async () => {
  const given = (key: string | null, account: string | null) => ({
    INVOICEXPRESS_API_KEY: key,
    INVOICEXPRESS_ACCOUNT: account,
    INVOICEXPRESS_API_BASE: 'https://{account}.app.invoicexpress.com',
  })
  assert.equal(invoiceXpressOf(given(null, 'acme')), null)
  assert.equal((await openPdfSources(null, null)).documents, null)
  assert.equal(invoiceXpressOf(given(apiKey, 'acme'))?.base, 'https://acme.app.invoicexpress.com')
  assert.throws(() => invoiceXpressOf(given(apiKey, null)), /^Error: INVOICEXPRESS_ACCOUNT is required/)
})

test('InvoiceXpress’ PDFs come only from its own or configured hosts, never from private addresses', () => {
  const options = { account: 'acme', apiKey, base: 'https://acme.app.invoicexpress.com' }
  assert.deepEqual(pdfGuardFor(options), { origins: ['https://*.invoicexpress.com'], allowPrivate: false })
  const pdfOrigins = ['https://files.example']
  assert.deepEqual(pdfGuardFor({ ...options, pdfOrigins }), { origins: pdfOrigins, allowPrivate: false })
  const base = 'http://127.0.0.1:4011'
  assert.deepEqual(pdfGuardFor({ ...options, base }), { origins: [base], allowPrivate: true })
})
