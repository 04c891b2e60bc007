/** Contract 4.2: one invoice, its lines and where its PDFs are. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PaymentPlatform } from '../../src/sources/source.ts'
import { SourceError } from '../../src/sources/source.ts'
import { detailFields, lineFields } from '../support/checks/contract.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { assertError, startService } from '../support/worlds/service.ts'

const path = (invoice: string, customer = 'cus_ana') => `/api/v1/client/${customer}/invoice/${invoice}`

/** A payment platform that knows nothing but what a test says. */
const platform = (fetchLines: PaymentPlatform['fetchLines']): PaymentPlatform => ({
  fetchLines,
  openPdf: () => Promise.reject(new SourceError('failed', 'no PDFs here')),
  findPaymentPage: async () => null,
})

for (const engine of engines) {
  describe(`the detail of an invoice on ${engine.name}`, () => {
    test('has exactly the contract’s fields in its order', async t => {
      const invoice = makeInvoice({ id: 'in_1', ...withDocument })
      const service = await startService(t, engine, { records: [{ invoice, lines: [makeLine()] }] })
      const { json, headers } = await service.get(path('in_1'))
      assert.equal(headers['content-type'], 'application/json')
      assert.deepEqual(Object.keys(json), detailFields)
      const { lines, lines_source, downloads, ...shared } = json
      assert.deepEqual({ ...invoice, ...shared }, invoice)
      assert.deepEqual(Object.keys(downloads), ['ix', 'payments'])
    })

    test('has stored lines complete and in order, with lines_source payments', async t => {
      const lines = Array.from({ length: 250 }, (_, i) => makeLine({ description: `line ${i}`, quantity: i }))
      const odd = makeLine({
        description: null,
        quantity: null,
        unit_amount_cents: null,
        amount_cents: -5,
        discount_percent: 33.33,
      })
      const leaky = lines.map(line => ({ ...line, secret: 'must not leave' }))
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_1' }, [...leaky, odd])],
      })
      const { json } = await service.get(path('in_1'))
      assert.equal(json.lines_source, 'payments')
      assert.deepEqual(json.lines, [...lines, odd])
      assert.deepEqual(Object.keys(json.lines[0]), lineFields)
    })

    test('has lines [] with lines_source payments for an invoice without any line', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' }, [])] })
      const { json } = await service.get(path('in_1'))
      assert.deepEqual([json.lines, json.lines_source], [[], 'payments'])
    })

    test('has lines [] with lines_source none when the lines are not available', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      const { status, json } = await service.get(path('in_1'))
      assert.deepEqual([status, json.lines, json.lines_source], [200, [], 'none'])
    })

    test('has lines from the payment platform when they are not stored', async t => {
      const line = makeLine()
      const asked: string[] = []
      const payments = platform(async id => {
        asked.push(id)
        return id === 'in_known' ? [line] : null
      })
      const service = await startService(t, engine, {
        payments,
        records: [
          makeRecord({ id: 'in_known' }),
          makeRecord({ id: 'in_gone' }),
          makeRecord({ id: 'in_stored' }, [line]),
        ],
      })
      const known = (await service.get(path('in_known'))).json
      assert.deepEqual([known.lines, known.lines_source], [[line], 'payments'])
      const gone = (await service.get(path('in_gone'))).json
      assert.deepEqual([gone.lines, gone.lines_source], [[], 'none'])
      await service.get(path('in_stored'))
      await service.get(path('in_known', 'cus_bob'))
      assert.deepEqual(asked, ['in_known', 'in_gone'], 'stored lines and foreign invoices are not asked for')
    })

    test('has the stored invoice and lines_source none when the payment platform fails or hangs', async t => {
      for (const payments of [
        platform(async () => {
          throw new SourceError('failed', 'down')
        }),
        platform(() => new Promise(() => {})),
      ]) {
        const service = await startService(t, engine, { payments, records: [makeRecord({ id: 'in_1' })] })
        const { status, json } = await service.get(path('in_1'))
        assert.deepEqual([status, json.id, json.lines, json.lines_source], [200, 'in_1', [], 'none'])
        assert.ok(service.logs.some(line => line.includes('line items unavailable')))
      }
    })

    test('has the path of each PDF in downloads, and null in downloads.ix without a document', async t => {
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_with', ...withDocument }), makeRecord({ id: 'in_without' })],
      })
      assert.deepEqual((await service.get(path('in_with'))).json.downloads, {
        ix: '/api/v1/client/cus_ana/invoice/in_with/ix/download',
        payments: '/api/v1/client/cus_ana/invoice/in_with/payments/download',
      })
      assert.deepEqual((await service.get(path('in_without'))).json.downloads, {
        ix: null,
        payments: '/api/v1/client/cus_ana/invoice/in_without/payments/download',
      })
    })

    test('is the same 404 for another customer’s invoice as for a missing invoice, byte for byte', async t => {
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_bobs', customer_id: 'cus_bob' }, [makeLine()]),
          makeRecord({ id: 'in_anas' }),
        ],
      })
      for (const suffix of ['', '/ix/download', '/payments/download'])
        for (const method of ['GET', 'HEAD']) {
          const foreign = await service.get(path('in_bobs') + suffix, { method })
          const missing = await service.get(path('in_none') + suffix, { method })
          assert.equal(foreign.status, 404)
          const { 'request-id': foreignId, date: _1, ...foreignHeaders } = foreign.headers
          const { 'request-id': missingId, date: _2, ...missingHeaders } = missing.headers
          assert.deepEqual(foreignHeaders, missingHeaders)
          assert.equal(
            foreign.text.replace(String(foreignId), ''),
            missing.text.replace(String(missingId), ''),
          )
          if (method === 'GET') assertError(foreign, 404, 'invoice_not_found')
        }
    })

    test('is refused with 400 for an invoice ID of the wrong form', async t => {
      const service = await startService(t, engine)
      for (const id of [
        '1',
        'cus_ana',
        'in_',
        'IN_1',
        'in_%2e%2e',
        'in_a%2Fb',
        'in_a%00',
        'upcoming_in_1',
        `in_${'x'.repeat(253)}`,
      ])
        for (const suffix of ['', '/ix/download', '/payments/download'])
          assertError(await service.get(path(id) + suffix), 400, 'invalid_parameter', 'invoiceId')
    })

    test('shows a saved change at once with its lines, and no lines that were removed', async t => {
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_1', status: 'open' }, [makeLine()])],
      })
      await service.save(makeRecord({ id: 'in_1', status: 'paid' }, [makeLine({ description: 'new' })]))
      const changed = (await service.get(path('in_1'))).json
      assert.deepEqual(
        [changed.status, changed.lines.length, changed.lines[0].description],
        ['paid', 1, 'new'],
      )
      await service.save(makeRecord({ id: 'in_1', status: 'paid' }))
      assert.equal((await service.get(path('in_1'))).json.lines_source, 'none')
    })
  })
}
