/** Contract 4.1, and every decision about the list that the contract leaves open. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { invoiceStatuses } from '../../src/domain/invoice.ts'
import { listParameters } from '../../src/domain/list-query.ts'
import { summaryFields } from '../support/checks/contract.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, assertError, shareService, startService } from '../support/worlds/service.ts'

const ids = (answer: Answer): string[] => {
  assert.equal(answer.status, 200, answer.text)
  return answer.json.invoices.map((invoice: { id: string }) => invoice.id)
}
const many = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    makeRecord({
      id: `in_${String(i).padStart(4, '0')}`,
      issued_at: new Date(Date.UTC(2026, 0, 1 + i)).toISOString(),
    }),
  )

for (const engine of engines) {
  describe(`the list of invoices on ${engine.name}`, () => {
    const service = shareService(engine, { records: many(3) })

    test('has exactly the envelope’s fields in the contract’s order', async t => {
      const service = await startService(t, engine, { records: [makeRecord()] })
      const { json, headers } = await service.list()
      assert.equal(headers['content-type'], 'application/json')
      assert.deepEqual(Object.keys(json), ['invoices', 'page', 'page_size', 'total', 'total_pages', 'source'])
      assert.deepEqual(
        { ...json, invoices: json.invoices.length },
        { invoices: 1, page: 1, page_size: 10, total: 1, total_pages: 1, source: 'synchronized_records' },
      )
    })

    test('has summaries with exactly the contract’s fields in its order, as saved', async t => {
      const full = makeInvoice({
        ...withDocument,
        company_name: 'Lima, Lda.',
        number: 'FT 2026/1 "x" \\ é 🧾',
      })
      const leaky = { ...full, secret: 'must not leave', lines: [] }
      const service = await startService(t, engine, { records: [{ invoice: leaky, lines: null }] })
      const [summary] = (await service.list()).json.invoices
      assert.deepEqual(summary, full)
      assert.deepEqual(Object.keys(summary), summaryFields)
    })

    test('has nullable fields as null, never left out', async t => {
      const bare = makeInvoice({
        number: null,
        customer_name: null,
        customer_email: null,
        company_name: null,
        customer_tax_id: null,
        tax_percent: null,
      })
      const service = await startService(t, engine, { records: [{ invoice: bare, lines: null }] })
      assert.deepEqual((await service.list()).json.invoices, [bare])
    })

    test('has negative, zero-decimal and three-decimal amounts unchanged', async t => {
      const amounts = [
        { currency: 'jpy', total_cents: 1234, subtotal_cents: 1234 },
        { currency: 'kwd', total_cents: 1234567, subtotal_cents: 1234567 },
        { currency: 'eur', total_cents: -500, subtotal_cents: -500 },
        { currency: 'usd', total_cents: Number.MAX_SAFE_INTEGER, tax_percent: 8.875 },
      ]
      const service = await startService(t, engine, { records: amounts.map(fields => makeRecord(fields)) })
      const { invoices } = (await service.list()).json
      for (const fields of amounts) {
        const found = invoices.find((invoice: { currency: string }) => invoice.currency === fields.currency)
        assert.deepEqual({ ...found, ...fields }, found)
      }
    })

    test('is sorted by issued_at and then id, both descending', async t => {
      const at = (issued_at: string, id: string) => makeRecord({ id, issued_at })
      const service = await startService(t, engine, {
        records: [
          at('2026-01-01T00:00:00.000Z', 'in_b'),
          at('2026-01-01T00:00:00.001Z', 'in_a'),
          at('2026-01-01T00:00:00.000Z', 'in_c'),
          at('2026-01-01T00:00:00.000Z', 'in_B'),
          at('2025-12-31T23:59:59.999Z', 'in_z'),
          at('2026-01-01T00:00:00.000Z', 'in_10'),
          at('2026-01-01T00:00:00.000Z', 'in_9'),
        ],
      })
      assert.deepEqual(ids(await service.list()), ['in_a', 'in_c', 'in_b', 'in_B', 'in_9', 'in_10', 'in_z'])
    })

    test('has only the invoices of the path’s customer', async t => {
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_mine' }), makeRecord({ id: 'in_other', customer_id: 'cus_bob' })],
      })
      assert.deepEqual(ids(await service.list()), ['in_mine'])
      assert.deepEqual(ids(await service.list('', { customer: 'cus_bob' })), ['in_other'])
    })

    test('has page 1 and page_size 10 by default', async t => {
      const service = await startService(t, engine, { records: many(12) })
      const { json } = await service.list()
      assert.equal(json.invoices.length, 10)
      assert.deepEqual([json.page, json.page_size, json.total, json.total_pages], [1, 10, 12, 2])
    })

    test('reads a page below 1 as the first, and above the last as the last', async t => {
      const service = await startService(t, engine, { records: many(25) })
      for (const page of ['0', '-1', '-99999999999999999999', '1']) {
        const { json } = await service.list(`?page=${page}`)
        assert.deepEqual([json.page, json.invoices.length, json.total], [1, 10, 25], page)
      }
      for (const page of ['3', '4', '2147483648', '9007199254740993', '99999999999999999999999']) {
        const { json } = await service.list(`?page=${page}`)
        assert.deepEqual([json.page, json.invoices.length, json.total], [3, 5, 25], page)
        assert.equal(json.invoices[0].id, 'in_0004')
      }
    })

    test('reads a page_size above 50 as 50, below 1 as 10, and names the used one', async t => {
      const service = await startService(t, engine, { records: many(120) })
      const cases = {
        '50': 50,
        '51': 50,
        '1000000': 50,
        '99999999999999999999': 50,
        '0': 10,
        '-5': 10,
        '1': 1,
        '7': 7,
      }
      for (const [asked, used] of Object.entries(cases)) {
        const { json } = await service.list(`?page_size=${asked}`)
        assert.deepEqual([json.page_size, json.invoices.length], [used, used], asked)
        assert.equal(json.total_pages, Math.ceil(120 / used))
      }
    })

    test('refuses a page or page_size that is not an integer with 400', async () => {
      for (const name of ['page', 'page_size'])
        for (const value of [
          'abc',
          '1.5',
          '1e3',
          '0x10',
          '1_0',
          '%201',
          '+1',
          '--1',
          '%D9%A1',
          'NaN',
          'null',
          '1;2',
          '%00',
        ])
          assertError(await service().list(`?${name}=${value}`), 400, 'invalid_parameter', name)
    })

    test('is empty with the whole envelope when no invoice matches', async () => {
      const { json } = await service().list('?status=void&page=7&page_size=20')
      assert.deepEqual(json, {
        invoices: [],
        page: 1,
        page_size: 20,
        total: 0,
        total_pages: 0,
        source: 'synchronized_records',
      })
    })

    test('is empty for an unknown customer, and not an error', async () => {
      const { status, json } = await service().list('', { customer: 'cus_nobody' })
      assert.deepEqual([status, json.invoices, json.total, json.total_pages, json.page], [200, [], 0, 0, 1])
    })

    test('is filtered by each of the five statuses, and refuses any other with 400', async t => {
      const service = await startService(t, engine, {
        records: invoiceStatuses.map(status => makeRecord({ id: `in_${status}`, status })),
      })
      for (const status of invoiceStatuses)
        assert.deepEqual(ids(await service.list(`?status=${status}`)), [`in_${status}`])
      for (const value of ['PAID', 'paid%20', 'unknown', 'paid,open', '%25', "paid'--", 'deleted']) {
        const answer = await service.list(`?status=${value}`)
        assertError(answer, 400, 'invalid_parameter', 'status')
        assert.match(answer.json.error.message, /draft, open, paid, void, uncollectible/)
      }
    })

    test('compares ix_status exactly, for any text, and never matches null', async t => {
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_settled', ...withDocument }),
          makeRecord({ id: 'in_upper', ...withDocument, ix_status: 'Settled' }),
          makeRecord({ id: 'in_odd', ...withDocument, ix_status: "second copy's 100%" }),
          makeRecord({ id: 'in_null' }),
        ],
      })
      assert.deepEqual(ids(await service.list('?ix_status=settled')), ['in_settled'])
      assert.deepEqual(ids(await service.list('?ix_status=Settled')), ['in_upper'])
      assert.deepEqual(ids(await service.list("?ix_status=second+copy's%20100%25")), ['in_odd'])
      for (const none of ['settle', 'settle_', '%25', 'settled%20', 'null', 'undefined', 'x'.repeat(500)])
        assert.deepEqual(ids(await service.list(`?ix_status=${none}`)), [])
      assertError(await service.list('?ix_status=a%00b'), 400, 'invalid_parameter', 'ix_status')
    })

    test('is filtered by status and ix_status independently, or by both', async t => {
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_1', ...withDocument, status: 'paid' }),
          makeRecord({ id: 'in_2', ...withDocument, status: 'open' }),
          makeRecord({ id: 'in_3', ...withDocument, ix_status: 'final', status: 'paid' }),
        ],
      })
      assert.deepEqual(ids(await service.list('?status=paid')), ['in_3', 'in_1'])
      assert.deepEqual(ids(await service.list('?ix_status=settled')), ['in_2', 'in_1'])
      assert.deepEqual(ids(await service.list('?status=paid&ix_status=settled')), ['in_1'])
    })

    test('filters by date_from and date_to as whole UTC days, both inclusive', async t => {
      const at = (id: string, issued_at: string) => makeRecord({ id, issued_at })
      const service = await startService(t, engine, {
        records: [
          at('in_before', '2026-02-27T23:59:59.999Z'),
          at('in_first', '2026-02-28T00:00:00.000Z'),
          at('in_last', '2026-02-28T23:59:59.999Z'),
          at('in_after', '2026-03-01T00:00:00.000Z'),
        ],
      })
      assert.deepEqual(ids(await service.list('?date_from=2026-02-28&date_to=2026-02-28')), [
        'in_last',
        'in_first',
      ])
      assert.deepEqual(ids(await service.list('?date_to=2026-02-28')), ['in_last', 'in_first', 'in_before'])
      assert.deepEqual(ids(await service.list('?date_from=2026-02-28')), ['in_after', 'in_last', 'in_first'])
      assert.deepEqual(ids(await service.list('?date_from=0001-01-01&date_to=9999-12-31')).length, 4)
    })

    test('is empty with 200 when date_from is after date_to', async () => {
      const { status, json } = await service().list('?date_from=2026-12-31&date_to=2026-01-01')
      assert.deepEqual([status, json.total, json.invoices], [200, 0, []])
    })

    test('refuses an invalid date with 400 and the expected format', async () => {
      const bad = [
        '2026-02-30',
        '2025-02-29',
        '2026-13-01',
        '2026-00-10',
        '2026-1-1',
        '26-01-01',
        '2026/01/01',
      ]
      const worse = [
        '01-02-2026',
        '2026-01-01T00:00:00Z',
        'today',
        '2026-01-01%20',
        '+2026-01-01',
        '20260101',
        '1767225600',
      ]
      for (const name of ['date_from', 'date_to'])
        for (const value of [...bad, ...worse]) {
          const answer = await service().list(`?${name}=${value}`)
          assertError(answer, 400, 'invalid_parameter', name)
          assert.match(answer.json.error.message, /YYYY-MM-DD/)
        }
      assert.equal((await service().list('?date_from=2024-02-29')).status, 200)
    })

    test('reads an empty parameter as absent', async () => {
      const plain = await service().list()
      const empty = await service().list(`?${listParameters.map(name => `${name}=`).join('&')}&`)
      assert.equal(empty.text, plain.text)
      assert.equal((await service().list('?status&q')).text, plain.text)
      assert.equal((await service().list('?q=%20%20+')).text, plain.text)
    })

    test('refuses a parameter that is given twice or as an array with 400', async () => {
      for (const name of listParameters.filter(name => name !== 'expand'))
        for (const query of [
          `${name}=1&${name}=2`,
          `${name}=&${name}=`,
          `${name}[]=1`,
          `${name}%5B%5D=1`,
          `${name}[0]=a`,
          `${name}[$ne]=x`,
        ])
          assertError(await service().list(`?${query}`), 400, 'invalid_parameter', name)
    })

    test('ignores an unknown parameter in any spelling', async () => {
      const plain = await service().list()
      const unknown =
        '?foo=1&foo=2&Status=void&customer_id=cus_bob&__proto__=x&constructor[prototype]=y&=z&%zz=1&a=%zz&&'
      assert.equal((await service().list(unknown)).text, plain.text)
    })

    test('refuses a value with invalid percent-encoding with 400', async () => {
      for (const value of ['%', '%zz', '%ff', '%c3', '%ed%a0%80'])
        for (const name of ['q', 'ix_status', 'status'])
          assertError(await service().list(`?${name}=${value}`), 400, 'invalid_parameter', name)
    })

    test('refuses a customer ID of the wrong form with 400', async () => {
      for (const id of [
        'ana',
        'in_ana',
        'cus_',
        'CUS_ana',
        'cus_a%20b',
        'cus_a.b',
        'cus_%00',
        'cus_%C3%A9',
        `cus_${'x'.repeat(252)}`,
        '%20cus_a',
        'cus_a%0a',
      ])
        assertError(await service().list('', { customer: id }), 400, 'invalid_parameter', 'customerId')
    })

    test('applies all filters together', async t => {
      const hit = {
        ...withDocument,
        status: 'open',
        issued_at: '2026-05-05T12:00:00.000Z',
        number: 'FT-77',
      } as const
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_hit', ...hit }),
          makeRecord({ id: 'in_status', ...hit, status: 'paid' }),
          makeRecord({ id: 'in_ix', ...hit, ix_status: 'final' }),
          makeRecord({ id: 'in_date', ...hit, issued_at: '2026-05-06T00:00:00.000Z' }),
          makeRecord({ id: 'in_q', ...hit, number: 'FT-78' }),
          makeRecord({ id: 'in_customer', ...hit, customer_id: 'cus_bob' }),
        ],
      })
      const query = '?status=open&ix_status=settled&date_from=2026-05-05&date_to=2026-05-05&q=ft%2077'
      assert.deepEqual(ids(await service.list(query)), ['in_hit'])
    })

    test('leaves out a deleted invoice, which the total does not count and which has no detail', async t => {
      const service = await startService(t, engine, { records: many(3) })
      const gone = await service.store.transaction(tx => tx.deleteInvoice('cus_ana', 'in_0001'))
      assert.equal(gone, true)
      const { json } = await service.list()
      assert.deepEqual([json.total, json.invoices.length], [2, 2])
      assertError(await service.get('/api/v1/client/cus_ana/invoice/in_0001'), 404, 'invoice_not_found')
      assert.equal(await service.store.transaction(tx => tx.deleteInvoice('cus_ana', 'in_0001')), false)
      assert.equal(await service.store.transaction(tx => tx.deleteInvoice('cus_bob', 'in_0002')), false)
    })
  })
}
