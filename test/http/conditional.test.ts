/** ETag, 304, Cache-Control and freshness: in headers, never in the body. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'
import { shareService, startService } from '../support/worlds/service.ts'

const list = '/api/v1/client/cus_ana/invoices'
const summary = '/api/v1/client/cus_ana/summary'
const balance = '/api/v1/client/cus_ana/balance'
const detail = '/api/v1/client/cus_ana/invoice/in_1'

for (const engine of engines) {
  describe(`ETags and conditional requests on ${engine.name}`, () => {
    const service = shareService(engine, { records: [makeRecord({ id: 'in_1' })] })

    test('list, summary, balance and detail have a strong ETag and Cache-Control: private, no-cache', async () => {
      for (const path of [list, summary, balance, detail]) {
        const { headers } = await service().get(path)
        assert.match(String(headers.etag), /^"[\w.-]+"$/)
        assert.equal(headers['cache-control'], 'private, no-cache')
      }
    })

    test('If-None-Match with the current ETag gets 304 without a body, also weak, in a list or as *', async () => {
      for (const path of [list, `${list}?status=paid&page=2`, summary, balance, detail]) {
        const { etag } = (await service().get(path)).headers
        for (const held of [etag, `W/${etag}`, `"other", ${etag}`, ` ${etag} ,"x"`, '*']) {
          const answer = await service().get(path, { headers: { 'if-none-match': String(held) } })
          assert.deepEqual([answer.status, answer.text, answer.headers.etag], [304, '', etag], String(held))
          assert.equal(answer.headers['cache-control'], 'private, no-cache')
          assert.equal(answer.headers['content-type'], undefined)
        }
        for (const held of ['"other"', String(etag).replaceAll('"', ''), '', 'W/"x"'])
          assert.equal((await service().get(path, { headers: { 'if-none-match': held } })).status, 200, held)
      }
    })

    test('HEAD gets the same headers as GET, also with 304', async () => {
      for (const path of [list, summary, balance, detail]) {
        const get = await service().get(path)
        const head = await service().get(path, { method: 'HEAD' })
        assert.equal(head.text, '')
        for (const name of ['etag', 'cache-control', 'content-type', 'content-length'])
          assert.equal(head.headers[name], get.headers[name], name)
        const again = await service().get(path, {
          method: 'HEAD',
          headers: { 'if-none-match': String(get.headers.etag) },
        })
        assert.equal(again.status, 304)
      }
    })

    test('the list’s ETag changes with every change of the customer’s invoices, and only then', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1', status: 'open' })] })
      const seen = new Set<string>()
      const expectNew = async (reason: string) => {
        const etag = String((await service.get(list)).headers.etag)
        assert.ok(!seen.has(etag), reason)
        seen.add(etag)
      }
      await expectNew('first')
      await service.save(makeRecord({ id: 'in_1', status: 'paid', number: 'N-1' }))
      await expectNew('changed')
      await service.save(makeRecord({ id: 'in_1', status: 'paid', number: 'N-1' }, [makeLine()]))
      await expectNew('lines changed')
      await service.save(makeRecord({ id: 'in_2' }))
      await expectNew('added')
      await service.store.transaction(tx => tx.deleteInvoice('cus_ana', 'in_2'))
      await expectNew('deleted')
      const before = (await service.get(list)).headers.etag
      await service.save(makeRecord({ customer_id: 'cus_bob' }))
      assert.equal((await service.get(list)).headers.etag, before)
    })

    test('customers of one import have different ETags, which are not valid for each other', async t => {
      const customers = ['cus_ana', 'cus_bob', 'cus_eva']
      const records = customers.map(customer_id => makeRecord({ customer_id }))
      const service = await startService(t, engine, { records })
      const path = (customer: string) => `/api/v1/client/${customer}/invoices`
      // A customer without an invoice has an ETag too.
      const asked = [...customers, 'cus_none', 'cus_nobody']
      const etags = await Promise.all(
        asked.map(async customer => String((await service.get(path(customer))).headers.etag)),
      )
      assert.equal(new Set(etags).size, asked.length, `${etags}`)
      for (const [owner, etag] of etags.entries())
        for (const [other, customer] of asked.entries()) {
          const { status } = await service.get(path(customer), { headers: { 'if-none-match': etag } })
          assert.equal(status, owner === other ? 304 : 200, `${etag} for ${customer}`)
        }
    })

    test('saving unchanged invoices again changes no ETag', async t => {
      const record = makeRecord({ id: 'in_1' }, [makeLine()])
      const service = await startService(t, engine, { records: [record] })
      const before = [(await service.get(list)).headers.etag, (await service.get(detail)).headers.etag]
      assert.equal(await service.store.transaction(tx => tx.saveInvoices([record])), 0)
      assert.deepEqual(
        [(await service.get(list)).headers.etag, (await service.get(detail)).headers.etag],
        before,
      )
    })

    test('a detail’s ETag changes only with its own invoice and lines', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1', number: 'N-1' })] })
      const first = (await service.get(detail)).headers.etag
      await service.save(makeRecord({ id: 'in_2' }))
      assert.equal((await service.get(detail)).headers.etag, first)
      await service.save(makeRecord({ id: 'in_1', number: 'N-1' }, [makeLine()]))
      assert.notEqual((await service.get(detail)).headers.etag, first)
    })

    test('a missing or another customer’s invoice gets 404 even with an invented ETag', async t => {
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_b', customer_id: 'cus_bob' })],
      })
      const etag = String((await service.get('/api/v1/client/cus_bob/invoice/in_b')).headers.etag)
      for (const held of ['*', etag])
        for (const id of ['in_b', 'in_none'])
          assert.equal(
            (
              await service.get(`/api/v1/client/cus_ana/invoice/${id}`, {
                headers: { 'if-none-match': held },
              })
            ).status,
            404,
          )
    })

    test('Fatura-Synced-At is the time of the last success, with 200 and 304, and is absent before the first', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      assert.equal((await service.get(list)).headers['fatura-synced-at'], undefined)
      await service.store.transaction(tx => tx.saveSuccess('import', Date.UTC(2026, 4, 1, 12)))
      const told = async () => (await service.get(list)).headers['fatura-synced-at'] !== undefined
      await eventually('the success is told', told)
      for (const path of [list, detail]) {
        const { headers, json } = await service.get(path)
        assert.equal(headers['fatura-synced-at'], '2026-05-01T12:00:00.000Z')
        assert.ok(!JSON.stringify(json).includes('synced_at'))
        const held = await service.get(path, { headers: { 'if-none-match': String(headers.etag) } })
        assert.deepEqual([held.status, held.headers['fatura-synced-at']], [304, '2026-05-01T12:00:00.000Z'])
      }
    })
  })
}
