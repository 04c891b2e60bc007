/** A customer's sums: by currency, status and month, of the moment that the list shows. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const path = '/api/v1/client/cus_ana/summary'
const list = '/api/v1/client/cus_ana/invoices'

const makeHuge = (length: number) =>
  Array.from({ length }, (_, i) => makeRecord({ id: `in_${i}`, total_cents: Number.MAX_SAFE_INTEGER }))

for (const engine of engines)
  describe(`the summary of a customer on ${engine.name}`, () => {
    test('has sums and counts by currency, status and UTC month, and follows every change', async t => {
      const lastMoment = '2026-02-28T23:59:59.999Z'
      const service = await startService(t, engine, {
        records: [
          makeRecord({ id: 'in_1', status: 'open', total_cents: 400_000 }),
          makeRecord({ id: 'in_2', status: 'open', total_cents: 70_651, issued_at: lastMoment }),
          makeRecord({ id: 'in_3', status: 'paid', total_cents: -500, issued_at: lastMoment }),
          makeRecord({ id: 'in_4', status: 'draft', currency: 'jpy', total_cents: 0 }),
          makeRecord({ id: 'in_5', customer_id: 'cus_bob', total_cents: 9 }),
        ],
      })
      const { json, headers } = await service.get(path)
      assert.equal(headers['content-type'], 'application/json')
      const february = { status: 'open', count: 1, total_cents: 70_651 }
      assert.deepEqual(json, {
        currencies: [
          {
            currency: 'eur',
            remaining_cents: 470_651,
            credited_cents: 0,
            statuses: [
              { status: 'open', count: 2, total_cents: 470_651 },
              { status: 'paid', count: 1, total_cents: -500 },
            ],
            months: [
              { month: '2026-02', ...february },
              { month: '2026-02', status: 'paid', count: 1, total_cents: -500 },
              { month: '2026-03', status: 'open', count: 1, total_cents: 400_000 },
            ],
          },
          {
            currency: 'jpy',
            remaining_cents: 0,
            credited_cents: 0,
            statuses: [{ status: 'draft', count: 1, total_cents: 0 }],
            months: [{ month: '2026-03', status: 'draft', count: 1, total_cents: 0 }],
          },
        ],
      })
      assert.equal(headers.etag, (await service.get(list)).headers.etag, 'of the same moment as the list')
      await service.save(makeRecord({ id: 'in_1', status: 'paid', total_cents: 400_000 }))
      const later = await service.get(path, { headers: { 'if-none-match': String(headers.etag) } })
      assert.equal(later.status, 200)
      assert.deepEqual(later.json.currencies[0].statuses[0], february)
    })

    test('is empty for an unknown customer, and refused for other tokens and invoice links', async t => {
      const service = await startService(t, engine, { records: [makeRecord()] })
      const unknown = await service.get('/api/v1/client/cus_nobody/summary')
      assert.deepEqual([unknown.status, unknown.json], [200, { currencies: [] }])
      const token = await service.createToken({ customers: ['cus_bob'] })
      assert.equal((await service.get(path, { token })).json.error.code, 'insufficient_scope')
      assert.equal((await service.get(path, { token: null })).json.error.code, 'missing_token')
      assert.equal((await service.get('/api/v1/client/ana/summary')).json.error.param, 'customerId')
    })

    test('has exact sums beyond 2^53', async t => {
      const service = await startService(t, engine, { records: makeHuge(1_000) })
      const sum = 1_000n * BigInt(Number.MAX_SAFE_INTEGER)
      assert.match((await service.get(path)).text, new RegExp(`"total_cents":${sum}\\}`))
    })

    test('has exact sums of credit notes beyond 2^53', async t => {
      const cents = Number.MAX_SAFE_INTEGER
      const note = {
        ...{ id: 2, type: 'CreditNote', number: 'NC A/2', date: '2026-03-02', status: 'final' },
        ...{ gross_cents: cents, total_cents: cents, in_invoice_currency: null },
      }
      const document = { ...exampleDocument, related: [note] }
      const records = [1, 2, 3].map(i => ({ ...makeRecord({ id: `in_${i}`, status: 'open' }), document }))
      const service = await startService(t, engine, { records })
      assert.ok((await service.get(path)).text.includes(`"credited_cents":${3n * BigInt(cents)},`))
    })

    test('has exact sums beyond 2^63 on PostgreSQL, and an error on SQLite', async t => {
      const service = await startService(t, engine, { records: makeHuge(1_100) })
      const { status, text } = await service.get(path)
      if (engine.name === 'sqlite') {
        assert.equal(status, 500)
        assert.match(service.logs.join(''), /add up to more than SQLite counts/)
      } else assert.ok(text.includes(`"total_cents":${1_100n * BigInt(Number.MAX_SAFE_INTEGER)}}`))
      assert.equal((await service.get(list)).json.total, 1_100)
    })
  })
