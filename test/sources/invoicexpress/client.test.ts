/** What the connector asks of InvoiceXpress: from a good one, and from one that fails in every way. */
import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { type Document, documentTypes } from '../../../src/domain/document.ts'
import type { Pace } from '../../../src/sources/calls/paced-calls.ts'
import { createClient } from '../../../src/sources/invoicexpress/client.ts'
import { createDocumentSource, paceFor } from '../../../src/sources/invoicexpress/document-source.ts'
import { invoiceXpressFailures, Refused } from '../../../src/sources/invoicexpress/read-answer.ts'
import type { DocumentSource } from '../../../src/sources/source.ts'
import { eventually } from '../../support/clients/cli.ts'
import {
  answer,
  apiKey,
  countCalls,
  failureOf,
  faults,
  type InvoiceXpress,
  startInvoiceXpress,
} from '../../support/upstreams/invoicexpress-upstream.ts'
import { readPayloads } from '../../support/worlds/payloads.ts'
import { stopClock, until } from '../../support/worlds/stopped-clock.ts'

const payloads = readPayloads<{ payload: Record<string, unknown>; expected: Document }>(
  new URL('payloads.json', import.meta.url),
)
const { payload, expected } = payloads.get('settled') ?? assert.fail()
const { id } = expected
/** By itself, what it is without it does not have. */
const whole = { ...expected, multicurrency: null }

const once: Pace = { perSecond: 10_000, attempts: 0, patienceMs: 60_000 }

interface World {
  upstream: InvoiceXpress
  source: DocumentSource
}

async function start(t: TestContext, listener: RequestListener, pace: Partial<Pace> = {}): Promise<World> {
  const upstream = await startInvoiceXpress(t, listener)
  const source = createDocumentSource(upstream.options, { ...once, ...pace })
  return { upstream, source }
}

function page(documents: unknown[], pagination: Record<string, unknown> = {}): Record<string, unknown> {
  const [total_entries, total_pages] = [documents.length, 1]
  return {
    invoices: documents,
    pagination: { total_entries, total_pages, per_page: 50, current_page: 1, ...pagination },
  }
}

const missing = answer({ errors: [{ error: 'not found' }] }, 404)

/** Every question, and an answer to it that fits. */
const questions: Record<
  string,
  { ask(source: DocumentSource): Promise<unknown>; fitting: RequestListener; result: unknown }
> = {
  listDocuments: {
    ask: source => source.listDocuments({}, 1),
    fitting: answer(page([payload])),
    result: { documents: [expected], misfits: [], pages: 1, total: 1 },
  },
  fetchDocument: {
    ask: source => source.fetchDocument(id, 'Invoice'),
    fitting: answer({ invoice: payload }),
    result: whole,
  },
  fetchClient: {
    ask: source => source.fetchClient(4455),
    fitting: answer({ client: { id: 4455, fiscal_id: '508025338' } }),
    result: { id: 4455, tax_id: '508025338' },
  },
}

describe('a list of documents', () => {
  test('is requested with each type and status by name, and with days in InvoiceXpress’ format', async t => {
    const { upstream, source } = await start(
      t,
      answer(page([payload], { current_page: 3, total_pages: 7, total_entries: 301 })),
    )
    const got = await source.listDocuments({ from: '2026-01-31', to: '2026-03-01' }, 3)
    assert.deepEqual(got, { documents: [expected], misfits: [], pages: 7, total: 301 })
    const [request] = upstream.requests
    const url = new URL(request?.url ?? '', upstream.origin)
    assert.equal(url.pathname, '/invoices.json')
    assert.deepEqual(
      [...url.searchParams],
      [
        ...documentTypes.map(type => ['type[]', type]),
        ...['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'].map(status => [
          'status[]',
          status,
        ]),
        ['non_archived', 'true'],
        ['date[from]', '31/01/2026'],
        ['date[to]', '01/03/2026'],
        ['page', '3'],
        ['per_page', '50'],
        ['api_key', apiKey],
      ],
    )
    assert.equal(request?.method, 'GET')
    assert.doesNotMatch(JSON.stringify(request?.headers), /c4nary/)
  })

  test('is filtered by the given statuses; without dates, documents of all dates match', async t => {
    const { upstream, source } = await start(t, answer(page([])))
    await source.listDocuments({ statuses: ['draft', 'sent'] }, 1)
    const { searchParams } = new URL(upstream.requests[0]?.url ?? '', upstream.origin)
    assert.deepEqual(searchParams.getAll('status[]'), ['draft', 'sent'])
    assert.equal(searchParams.get('date[from]'), null)
  })

  test('leaves out documents of types without an invoice, and may be empty', async t => {
    const others = ['CreditNote', 'DebitNote', 'Receipt', 'Quote'].map(type => ({ type }))
    const { upstream, source } = await start(t, answer(page([...others, payload])))
    assert.deepEqual(await source.listDocuments({}, 1), {
      documents: [expected],
      misfits: [],
      pages: 1,
      total: 5,
    })
    for (const total_pages of [0, 1]) {
      upstream.script(answer(page([], { total_pages })))
      assert.deepEqual(await source.listDocuments({}, 1), {
        documents: [],
        misfits: [],
        pages: total_pages,
        total: 0,
      })
    }
  })

  test('fails when InvoiceXpress answers with another page, or with invalid counts', async t => {
    const { upstream, source } = await start(t, missing)
    const wrong: Record<string, unknown>[] = [
      page([payload], { current_page: 1, total_pages: 3 }),
      page([payload], { current_page: 3, total_pages: 3 }),
      page([payload], { current_page: 'two', total_pages: 3 }),
      page([payload], { current_page: '2', total_pages: 1 }),
      page([payload], { current_page: 2, total_pages: 1 }),
      page([], { current_page: 2, total_pages: 3, total_entries: 120 }),
      page([payload], { current_page: 2, total_pages: null }),
      page([payload], { current_page: 2, total_pages: 2.5 }),
      page([payload], { current_page: 2, total_pages: 3, total_entries: -1 }),
      page([payload], { current_page: 2, total_pages: 3, total_entries: '5e1' }),
      { invoices: [payload] },
      { pagination: page([]).pagination },
      { ...page([payload], { current_page: 2, total_pages: 3, total_entries: 120 }), receipts: [] },
      { ...page([], { current_page: 2, total_pages: 3, total_entries: 51 }), invoices: { 0: payload } },
    ]
    for (const body of wrong) {
      upstream.script(answer(body))
      const { failure, message } = await failureOf(source.listDocuments({}, 2))
      assert.equal(failure, 'failed', JSON.stringify(body))
      assert.match(message, /does not fit/)
    }
  })

  test('fails on a 404 of a gateway, while InvoiceXpress’ own 404 means a missing document', async t => {
    const { upstream, source } = await start(t, missing)
    assert.equal(await source.fetchDocument(17, 'Invoice'), null)
    for (const body of ['<html><h1>404 Not Found</h1></html>', '', '"not found"', '404']) {
      upstream.script((_request, response) => void response.writeHead(404).end(body))
      const { failure, scope } = await failureOf(source.fetchDocument(17, 'Invoice'))
      assert.deepEqual([failure, scope], ['failed', 'source'], body)
    }
  })

  test('ends early when it became shorter since the previous page', async t => {
    const { upstream, source } = await start(t, missing)
    for (const rest of [
      { total_pages: 1, total_entries: 50 },
      { total_pages: 0, total_entries: 0 },
    ]) {
      upstream.script(answer(page([], { current_page: 2, ...rest })))
      const { documents, total } = await source.listDocuments({}, 2)
      assert.deepEqual([documents, total], [[], rest.total_entries])
    }
  })

  test('has either archived documents or all others, never both', async t => {
    const { upstream, source } = await start(t, answer(page([])))
    await source.listDocuments({ isArchived: true }, 1)
    const { searchParams } = new URL(upstream.requests[0]?.url ?? '', upstream.origin)
    assert.deepEqual([searchParams.get('archived'), searchParams.get('non_archived')], ['true', null])
  })

  test('may have its type as its key, and its counts as text', async t => {
    const counts = { current_page: '1', total_pages: '1', total_entries: '1' }
    const { invoices, pagination } = page([payload], counts)
    const { source } = await start(t, answer({ invoice_receipts: invoices, pagination }))
    const got = await source.listDocuments({}, 1)
    assert.deepEqual(got, { documents: [expected], misfits: [], pages: 1, total: 1 })
  })

  test('returns the valid documents, and the ID and wrong field of each invalid document', async t => {
    const others = [{ ...payload, id: 17, status: null }, { ...payload, id: 'abc' }, null]
    const { source } = await start(t, answer(page([payload, ...others])))
    const { documents, misfits } = await source.listDocuments({}, 1)
    assert.deepEqual(documents, [expected])
    assert.deepEqual(misfits, [
      { id: 17, reason: 'InvoiceXpress sent a document that does not fit: status is null' },
      { id: null, reason: 'InvoiceXpress sent a document that does not fit: id is a text' },
      { id: null, reason: 'InvoiceXpress sent a document that does not fit: it is null' },
    ])
  })

  test('requests a page again when all its documents are invalid, and accepts the page after the last attempt', async t => {
    const unfit = answer(page([{ ...payload, total: '1e3' }]))
    const { upstream, source } = await start(t, unfit, { attempts: 2 })
    const { documents, misfits } = await source.listDocuments({}, 1)
    assert.deepEqual([documents, misfits.length, upstream.requests.length], [[], 1, 3])
    upstream.script(unfit, answer(page([payload])))
    assert.deepEqual((await source.listDocuments({}, 1)).documents, [expected])
    upstream.script(unfit, answer('', 503))
    assert.equal((await failureOf(source.listDocuments({}, 1))).scope, 'source')
  })
})

describe('the fetch of one document', () => {
  const paths: Record<string, string> = {
    Invoice: '/invoices/',
    InvoiceReceipt: '/invoice_receipts/',
    SimplifiedInvoice: '/simplified_invoices/',
    VatMossInvoice: '/vat_moss_invoices/',
    CashInvoice: '/cash_invoices/',
  }

  test('reads from its type’s address, whatever the key of the answer is', async t => {
    const { upstream, source } = await start(t, missing)
    for (const type of documentTypes) {
      upstream.script(answer({ [`key_of_${type}`]: { ...payload, type } }))
      assert.deepEqual(await source.fetchDocument(id, type), { ...whole, type })
      assert.equal(upstream.paths.at(-1), `${paths[type]}${id}.json`)
    }
    assert.equal(upstream.requests.length, documentTypes.length)
  })

  test('tries each type in turn when the type is unknown', async t => {
    const { upstream, source } = await start(t, missing)
    upstream.script(
      missing,
      missing,
      answer({ simplified_invoice: { ...payload, type: 'SimplifiedInvoice' } }),
    )
    assert.equal((await source.fetchDocument(id, null))?.type, 'SimplifiedInvoice')
    assert.equal(upstream.requests.length, 3)
    upstream.script(missing)
    assert.equal(await source.fetchDocument(id, null), null)
    assert.deepEqual(
      upstream.paths.slice(3),
      documentTypes.map(type => `${paths[type]}${id}.json`),
    )
    upstream.script(missing, answer('oops', 500), missing)
    assert.equal((await failureOf(source.fetchDocument(id, null))).failure, 'failed')
  })

  test('returns null for a missing document, and a deleted document with its status', async t => {
    const { upstream, source } = await start(t, missing)
    assert.equal(await source.fetchDocument(id, 'Invoice'), null)
    upstream.script(answer({ invoice: { ...payload, status: 'deleted' } }))
    assert.equal((await source.fetchDocument(id, 'Invoice'))?.status, 'deleted')
    upstream.script(answer({ credit_note: { ...payload, type: 'CreditNote' } }))
    assert.equal(await source.fetchDocument(id, 'Invoice'), null)
  })

  test('assumes the requested type when the answer names no type', async t => {
    const { upstream, source } = await start(t, missing)
    const { type: _, ...untyped } = payload
    for (const key of ['invoice', 'invoice_receipt']) {
      upstream.script(answer({ [key]: untyped }))
      assert.deepEqual(await source.fetchDocument(id, 'InvoiceReceipt'), {
        ...whole,
        type: 'InvoiceReceipt',
      })
    }
    for (const key of ['credit_note', 'estimate', 'simplified_invoice']) {
      upstream.script(answer({ [key]: untyped }))
      assert.equal((await failureOf(source.fetchDocument(id, 'InvoiceReceipt'))).scope, 'record')
    }
  })

  test('fails when the answer has another ID or a second object', async t => {
    const { upstream, source } = await start(t, missing)
    for (const body of [
      { invoice: { ...payload, id: id + 1 } },
      { invoice: payload, other: payload },
      { invoice: payload, errors: [] },
      { invoice: [payload] },
      { invoice: null },
      payload,
    ]) {
      upstream.script(answer(body))
      assert.equal((await failureOf(source.fetchDocument(id, 'Invoice'))).failure, 'failed')
    }
  })
})

test('a fetched client is null when it is missing, and a failure when its ID differs', async t => {
  const { upstream, source } = await start(t, missing)
  assert.equal(await source.fetchClient(4455), null)
  assert.equal(upstream.paths[0], '/clients/4455.json')
  upstream.script(answer({ client: { id: 4455, fiscal_id: '' } }))
  assert.deepEqual(await source.fetchClient(4455), { id: 4455, tax_id: null })
  upstream.script(answer({ client: { id: 4456, fiscal_id: '508025338' } }))
  assert.equal((await failureOf(source.fetchClient(4455))).failure, 'failed')
})

const defaultTimeoutMs = 20_000

describe('faults of InvoiceXpress', { timeout: 600_000 }, () => {
  for (const [name, { listener, failure }] of Object.entries(faults))
    test(`${name} gives a failure in our own words, and the next request succeeds`, async t => {
      const all = await Promise.all(
        Object.values(questions).map(async question => ({ ...question, ...(await start(t, listener)) })),
      )
      const clock = stopClock(t)
      let over = 0
      const failures = all.map(({ ask, source }) => failureOf(ask(source)).finally(() => over++))
      await until(() => all.every(({ upstream }) => upstream.requests.length === 1))
      if (failure === 'timeout') {
        await clock.pass(defaultTimeoutMs - 1)
        assert.equal(over, 0)
        await clock.pass(1)
      }
      for (const asked of failures) assert.equal((await asked).failure, failure)
      for (const { upstream, ask, source, fitting, result } of all) {
        assert.equal(upstream.requests.length, 1)
        upstream.script(fitting)
        assert.deepEqual(await ask(source), result)
      }
    })

  test('a temporary failure is retried', async t => {
    const names = ['reset', 'error_500', 'html', 'errors_in_200', 'truncated', 'no_keys']
    const askAll = names.map(async name => {
      const { upstream, source } = await start(t, missing, { attempts: 2 })
      const { ask, fitting, result } = questions.fetchClient ?? assert.fail()
      const { listener } = faults[name] ?? assert.fail()
      upstream.script(listener, listener, fitting)
      assert.deepEqual(await ask(source), result)
      assert.equal(upstream.requests.length, 3, name)
    })
    await Promise.all(askAll)
  })

  test('a permanent failure is not retried', async t => {
    const { upstream, source } = await start(t, missing, { attempts: 3 })
    for (const status of [301, 302, 307, 400, 401, 402, 403, 410, 422]) {
      upstream.script(
        answer({ errors: [{ error: apiKey }] }, status, { location: `${upstream.origin}/elsewhere` }),
      )
      const before = upstream.requests.length
      const { failure, message } = await failureOf(source.listDocuments({}, 1))
      assert.equal(failure, 'failed')
      assert.match(message, status === 401 || status === 403 ? /refused the key/ : new RegExp(`${status}`))
      assert.equal(upstream.requests.length, before + 1)
    }
    assert.ok(!upstream.paths.includes('/elsewhere'), 'a redirect was followed')
  })

  test('an endless answer is read up to 32 MB', async t => {
    const upstream = await startInvoiceXpress(t, faults.huge?.listener ?? assert.fail())
    const source = createDocumentSource(
      { ...upstream.options, timeoutMs: 20_000 },
      { ...once, patienceMs: 30_000 },
    )
    assert.match((await failureOf(source.listDocuments({}, 1))).message, /too much/)
    assert.ok(upstream.sent < 64 * 1024 * 1024, `${upstream.sent}`)
  })

  test('an unreachable host is named only by its origin', async t => {
    const { upstream } = await start(t, missing)
    const bases = ['http://c4nary.invalid', 'http://127.0.0.1:1', upstream.origin.replace('http:', 'https:')]
    for (const base of bases) {
      const source = createDocumentSource({ account: 'c4nary', apiKey, base, timeoutMs: 4_000 }, once)
      for (const { ask } of Object.values(questions)) {
        const { message } = await failureOf(ask(source))
        assert.match(message, /\((ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EPROTO|ERR_SSL_\w+)\)|in time/)
        if (!message.includes('in time')) assert.ok(message.includes(`at ${base} (`), message)
      }
    }
  })
})

describe('the pace of requests to InvoiceXpress', () => {
  test('keeps simultaneous requests apart by three quarters of the rate’s interval', async t => {
    const { upstream, source } = await start(t, missing, { perSecond: 20 })
    const clock = stopClock(t)
    const asked = Promise.all(Array.from({ length: 7 }, () => source.fetchClient(1)))
    for (let turn = 1; turn <= 7; turn++) {
      await until(() => upstream.requests.length >= turn)
      // The first was let go as if its timer had been late, by as much as is made up for.
      await clock.pass(turn === 1 ? 32 : 37)
      assert.equal(upstream.requests.length, turn)
      await clock.pass(0.5)
    }
    await asked
  })

  test('is 480 requests a minute for InvoiceXpress, and unlimited for a sandbox', () => {
    assert.equal(paceFor('https://acme.app.invoicexpress.com').perSecond, 8)
    for (const base of [
      'http://127.0.0.1:4011',
      'https://invoicexpress.com.example',
      'https://notinvoicexpress.com',
    ])
      assert.ok(paceFor(base).perSecond > 1_000)
  })

  test('applies a requested pause to every call', async t => {
    const { upstream, source } = await start(t, answer('', 429, { 'retry-after': '7' }), { attempts: 1 })
    const calls = countCalls(t)
    const clock = stopClock(t)
    const first = source.fetchClient(1)
    await until(() => calls.length === 1)
    upstream.script(missing)
    const second = source.fetchClient(2)
    await clock.pass(6_999)
    assert.equal(upstream.requests.length, 1)
    await clock.pass(1)
    assert.deepEqual(await Promise.all([first, second]), [null, null])
    assert.deepEqual(calls, ['throttled', 'missing', 'missing'])
  })

  test('reads Retry-After as seconds or a date, at most a minute, and 15 seconds by default', t => {
    const now = Date.parse('2026-03-05T12:00:00Z')
    t.mock.timers.enable({ apis: ['Date'], now })
    const pauses: [retryAfter: string | undefined, pause: number][] = [
      ['7', 7_000],
      ['0', 0],
      ['86400', 60_000],
      ['9'.repeat(400), 60_000],
      ['Thu, 05 Mar 2026 12:00:20 GMT', 20_000],
      ['Fri, 06 Mar 2026 12:00:00 GMT', 60_000],
      ['soon, perhaps', 15_000],
      ['-5', 15_000],
      ['1e3', 15_000],
      [undefined, 15_000],
    ]
    const pauseAfter = (status: number, retryAfter: string | undefined) =>
      invoiceXpressFailures.pauseFor(new Refused({ status, retryAfter, body: undefined }))
    for (const [retryAfter, pause] of pauses)
      assert.equal(pauseAfter(429, retryAfter), pause, `${retryAfter}`)
    assert.equal(pauseAfter(500, '7'), 0)
  })
})

describe('connections to InvoiceXpress', () => {
  test('are kept and used again', async t => {
    const { upstream, source } = await start(t, missing)
    for (let time = 0; time < 5; time++) await source.fetchClient(1)
    assert.deepEqual([upstream.requests.length, upstream.connections], [5, 1])
  })

  test('are replaced without a failure when they close at the moment of their next use', async t => {
    const served = new WeakSet<object>()
    const { upstream, source } = await start(t, (request, response) => {
      if (served.has(request.socket)) return void request.socket.destroy()
      served.add(request.socket)
      missing(request, response)
    })
    for (let time = 0; time < 5; time++) assert.equal(await source.fetchClient(1), null)
    assert.equal(upstream.connections, 5)
  })

  test('are closed at once when the answer is no longer needed', async t => {
    const upstream = await startInvoiceXpress(t, faults.slow_body?.listener ?? assert.fail())
    const ask = createClient(upstream.options)
    const leaving = new AbortController()
    const asked = failureOf(ask('/invoices.json', [], leaving.signal))
    await eventually('it is asked', () => upstream.requests.length === 1)
    leaving.abort()
    assert.match((await asked).message, /was canceled/)
    await eventually('it is let go', () => upstream.open === 0)
    await failureOf(ask('/invoices.json', [], leaving.signal))
    assert.equal(upstream.requests.length, 1)
  })
})
