/** The view for people who look into the database themselves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import { writeAmount } from '../../src/domain/money.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { engines } from '../support/databases/engines.ts'
import { readRows } from '../support/databases/store-rows.ts'
import { makeRecord, withDocument } from '../support/worlds/records.ts'

const view = 'SELECT * FROM fatura.invoices_readable ORDER BY id'

async function save(url: string, records: readonly InvoiceRecord[]): Promise<void> {
  const store = await openWriteStore(url)
  await store.transaction(tx => tx.saveInvoices(records))
  await store.close()
}

for (const engine of engines) {
  test(`the readable view on ${engine.name} shows an invoice beside its document`, async t => {
    const url = await engine.createStore(t)
    const issued = { issued_at: '2026-03-02T09:30:00.999Z', total_cents: 12_305, currency: 'eur' } as const
    await save(url, [
      {
        ...makeRecord({ id: 'in_1', number: 'N-1', status: 'paid', ...issued, ...withDocument }),
        document: { ...exampleDocument, number: 'FT A/1' },
      },
      {
        ...makeRecord({ id: 'in_2', number: null, status: 'draft', display_name: 'a\u0000"number":"x' }),
        document: { ...exampleDocument, number: null },
      },
      makeRecord({ id: 'in_3' }),
    ])
    const [first, second, third] = await readRows(url, view)
    assert.deepEqual(
      { ...first },
      {
        customer_id: 'cus_ana',
        id: 'in_1',
        number: 'N-1',
        status: 'paid',
        total: '123.05 EUR',
        issued_at: '2026-03-02T09:30:00Z',
        document_number: 'FT A/1',
        ix_status: withDocument.ix_status,
        ix_sync_state: 'synced',
      },
    )
    assert.deepEqual([second?.number, second?.document_number], [null, null])
    assert.deepEqual([third?.document_number, third?.ix_status], [null, null])
  })

  test(`the readable view on ${engine.name} writes amounts of every currency like the program`, async t => {
    const url = await engine.createStore(t)
    const currencies = Intl.supportedValuesOf('currency').map(code => code.toLowerCase())
    const records = currencies.flatMap(currency =>
      [12_345, 7, -7].map(total_cents =>
        makeRecord({ id: `in_${currency}_${total_cents}`, currency, total_cents }),
      ),
    )
    await save(url, records)
    const totals = new Map((await readRows(url, view)).map(({ id, total }) => [id, total]))
    for (const { invoice } of records) {
      const { id, currency, total_cents } = invoice
      assert.equal(totals.get(id), `${writeAmount(total_cents, currency)} ${currency.toUpperCase()}`)
    }
  })
}
