/** Traces of clients (W3C Trace Context): told in the log, and handed on to what is asked of upstream systems. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createInvoicingSystem } from '../../src/sources/invoicexpress/invoicing-system.ts'
import { createPaymentPlatform } from '../../src/sources/stripe/payment-platform.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

/** Stands for both systems: has nothing, and keeps the headers that it was asked with. */
async function startUpstream(t: TestContext) {
  const asked: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    asked.push(request.headers)
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"none"}}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    asked,
    payments: createPaymentPlatform({ apiKey: 'sk_test_sandbox', base }),
    documents: createInvoicingSystem({ account: null, apiKey: 'none', base }),
  }
}

for (const engine of engines)
  describe(`traces on ${engine.name}`, () => {
    const invoice = '/api/v1/client/cus_ana/invoice/in_1'
    const paths = [invoice, `${invoice}/payments/download`, `${invoice}/ix/download`]
    const record = makeRecord({
      customer_id: 'cus_ana',
      id: 'in_1',
      status: 'open',
      ix_id: 7,
      ix_status: 'final',
    })

    test('pass a traceparent on to both systems, with its trace ID in the log', async t => {
      const { asked, ...upstream } = await startUpstream(t)
      const service = await startService(t, engine, { records: [record], ...upstream })
      for (const path of paths) await service.get(path, { headers: { traceparent } })
      assert.ok(asked.length >= 3)
      assert.deepEqual(new Set(asked.map(headers => headers.traceparent)), new Set([traceparent]))
      const lines = service.logs
        .filter(line => line.includes('"msg":"request"'))
        .map(line => JSON.parse(line))
      assert.deepEqual(
        lines.map(({ trace_id }) => trace_id),
        paths.map(() => traceId),
      )
    })

    test('ignore an invalid traceparent', async t => {
      const { asked, ...upstream } = await startUpstream(t)
      const service = await startService(t, engine, { records: [record], ...upstream })
      for (const wrong of [
        `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
        `00-${traceId}-${'0'.repeat(16)}-01`,
        `ff-${traceId}-00f067aa0ba902b7-01`,
        traceparent.toUpperCase(),
        `${traceparent}-more`,
        '"},{"level":60',
      ])
        assert.equal((await service.get(invoice, { headers: { traceparent: wrong } })).status, 200)
      assert.ok(asked.length > 0 && asked.every(headers => headers.traceparent === undefined))
      assert.ok(service.logs.every(line => !line.includes('trace_id') && !line.includes('"level":60')))
    })
  })
