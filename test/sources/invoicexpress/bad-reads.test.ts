/** PDF, QR code and SAF-T file of an InvoiceXpress that misbehaves in every way: whole and true, or an error; then it passes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { type DocumentFault, type DocumentRouteName, documentFaultNames } from '../../../sandbox/faults.ts'
import { readSaft } from '../../../src/operations/reconcile/read-saft.ts'
import { createInvoicingSystem } from '../../../src/sources/invoicexpress/invoicing-system.ts'
import { openSaftExport } from '../../../src/sources/invoicexpress/saft-export.ts'
import { campaign, reportFigure } from '../../support/checks/campaign.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { anyOrdinary, startOrdinary } from '../../support/worlds/documents.ts'
import { startService } from '../../support/worlds/service.ts'

const sqlite = engines.find(({ name }) => name === 'sqlite') as Engine
const faults = campaign<readonly DocumentFault[]>(['garbled', 'redirect', 'missing_id'], documentFaultNames)
/** Some faults of a campaign end with it alone. */
const patienceMs = campaign(30_000, 2_000)

test('a PDF, a QR code and a SAF-T file come whole or not at all from a failing InvoiceXpress', async t => {
  // Made at once: that it is waited for is shown elsewhere.
  const rig = await startOrdinary(t, sqlite, { invoices: 40, ix: { pdfDelay: 0 } })
  const options = { account: null, apiKey: 'canary_key_of_invoicexpress', base: rig.ix.address }
  // A new one with every fault: after five faults in a row it would not ask for ten seconds.
  const renew = () => createInvoicingSystem(options, { budget: 1.5 * patienceMs, answer: patienceMs })
  const systems = { pdf: renew(), qr: renew() }
  const given: Engine = { name: 'given', createStore: async () => rig.url }
  const service = await startService(t, given, {
    documents: {
      openPdf: (id, signal) => systems.pdf.openPdf(id, signal),
      openQr: (id, signal) => systems.qr.openQr?.(id, signal) ?? assert.fail(),
    },
  })
  const [id] = anyOrdinary(rig)
  const { customer_id, ix_created_at } = await rig.invoice(id)
  const month = String(ix_created_at).slice(0, 7)

  async function get(kind: keyof typeof systems, path: string): Promise<string | null> {
    systems[kind] = renew()
    // An answer that breaks off is no answer.
    const got = await service.get(`/api/v1/client/${customer_id}/invoice/${id}/${path}`).catch(() => null)
    if (got?.status === 200) return got.text
    if (got !== null) assert.ok(got.status >= 404 && got.json.error.code, `${got.status} ${got.text}`)
    return null
  }

  async function readMonth(): Promise<string | null> {
    const limits = { budgetMs: patienceMs, deadlineMs: 5 * patienceMs }
    try {
      const file = await openSaftExport({ ...options, timeoutMs: patienceMs }, month, () => {}, limits)
      return inspect(await Array.fromAsync(readSaft(file)), { depth: null, maxArrayLength: null })
    } catch (error) {
      // Not a fault of the program's own.
      assert.ok(error instanceof Error && error.constructor !== TypeError, String(error))
      return null
    }
  }

  const reads: [read: () => Promise<string | null>, ...DocumentRouteName[]][] = [
    [() => get('pdf', 'ix/download'), 'ix_pdf', 'ix_pdf_file'],
    [() => get('qr', 'document/qr'), 'ix_qr', 'ix_qr_file'],
    [readMonth, 'ix_saft', 'ix_saft_file'],
  ]
  await Promise.all(
    reads.map(async ([read, ...routes]) => {
      const sound = await read()
      assert.ok(sound !== null)
      for (const route of routes)
        for (const fault of faults) {
          rig.ix.faults.set(route, fault, { retryAfter: '0' })
          const meanwhile = await read()
          assert.ok(meanwhile === null || meanwhile === sound, `${fault} at ${route}: ${meanwhile}`)
          rig.ix.faults.set(route, fault, { times: 0 })
          assert.equal(await read(), sound, `after ${fault} at ${route}`)
        }
    }),
  )
  assert.equal(rig.ix.requests.get('redirected'), undefined)
  reportFigure(t, 'R4', `reads: ${faults.length} faults × ${2 * reads.length} calls of InvoiceXpress`)
})
