/** A walk through a store's invoices: the same ones as its lists have, all of one moment. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { type Invoice, invoiceStatuses } from '../../src/domain/invoice.ts'
import { readFilterTexts } from '../../src/http/read-filter.ts'
import { openOperatorStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import type { InvoiceFilter, InvoiceWalk, OperatorStore, ReadStore } from '../../src/store/store.ts'
import { campaign } from '../support/checks/campaign.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'

const names = ['João Conceição', 'Padaria São Bento, Lda.', 'ACME 100%', 'a_b\\']
const ixStatuses = ['settled', 'final', "o'k", null]
/** One of them has enough to be counted, so that its lists come from counters and kept texts. */
const customers = ['cus_ana', 'cus_Bob', 'cus_many']

function makeRecords() {
  return Array.from({ length: 1_300 }, (_, i) => {
    const ix_status = ixStatuses[i % 4] ?? null
    return makeRecord(
      {
        ...(ix_status !== null && withDocument),
        id: `in_${i}`,
        number: i % 9 === 0 ? null : `2026/${String(i).padStart(5, '0')}`,
        customer_id: customers[i % 13 < 2 ? i % 13 : 2] ?? '',
        display_name: names[i % 5] ?? 'x',
        customer_tax_id: i % 3 === 0 ? 'PT 509 442 013' : '509442013',
        // Several of one moment, and some at the edges of days.
        issued_at: new Date(Date.UTC(2026, 0, 1) + Math.floor(i / 3) * 43_200_000 - (i % 2)).toISOString(),
        status: invoiceStatuses[(i * 7) % 5] ?? 'paid',
        ix_id: ix_status === null ? null : 4_000 + i,
        ix_status,
      },
      i % 2 === 0 ? [makeLine({ id: `il_${i}` })] : null,
    )
  })
}

async function createStores(t: TestContext, engine: Engine) {
  const url = await engine.createStore(t)
  const writer = await openWriteStore(url)
  const [operator, reader] = [await openOperatorStore(url), await openReadStore(url)]
  t.after(() => Promise.all([writer.close(), operator.close(), reader.close()]))
  const records = makeRecords()
  await writer.transaction(tx => tx.saveInvoices(records))
  return { url, writer, operator, reader, records }
}

async function readWalk(
  store: OperatorStore,
  walk: Partial<InvoiceWalk>,
): Promise<{ invoice: Invoice; lines: string | null }[]> {
  const found = []
  for await (const batch of store.walkInvoices({ customers: null, withLines: false, ...walk }))
    for (const { summary, lines } of batch) found.push({ invoice: JSON.parse(summary) as Invoice, lines })
  return found
}

async function readPages(store: ReadStore, customer_id: string, filter: InvoiceFilter): Promise<Invoice[]> {
  const found: Invoice[] = []
  for (let page = 1; ; page++) {
    const { summaries, total } = await store.listInvoices({ customer_id, page, page_size: 50, ...filter })
    found.push(...JSON.parse(`[${summaries}]`))
    if (page * 50 >= total) return found
  }
}

const someFilter = fc.record(
  {
    status: fc.constantFrom(...invoiceStatuses),
    ix_status: fc.constantFrom('settled', "o'k", 'none such'),
    date_from: fc.constantFrom('2025-12-31', '2026-02-01', '2026-06-01'),
    date_to: fc.constantFrom('2026-01-31', '2026-05-31', '2026-12-31'),
    q: fc.constantFrom('conceicao', '2026/0012', '100%', 'PT509442013', 'bento 7', 'in_ 40', 'a_b\\', '...'),
  },
  { requiredKeys: [] },
)

for (const engine of engines)
  describe(`a walk through all invoices on ${engine.name}`, () => {
    it('gives each customer’s invoices in the order of their list, with any filter', async t => {
      const { operator, reader } = await createStores(t, engine)
      const some = fc.tuple(someFilter, fc.option(fc.subarray(customers, { minLength: 1 })))
      const check = async ([texts, given]: [Record<string, string>, string[] | null]) => {
        const filter = readFilterTexts(texts)
        const walked = await readWalk(operator, { customers: given, ...filter })
        const listed = []
        for (const customer of [...(given ?? customers)].sort())
          listed.push(...(await readPages(reader, customer, filter)))
        assert.deepEqual(
          walked.map(({ invoice }) => invoice),
          listed,
        )
      }
      await fc.assert(fc.asyncProperty(some, check), { numRuns: campaign(8, 400) })
      await check([{}, null])
      await check([{}, ['cus_nobody']])
    })

    it('gives the known lines when the caller asks for lines', async t => {
      const { operator, records } = await createStores(t, engine)
      const walked = await readWalk(operator, { withLines: true })
      const known = new Map(records.map(({ invoice, lines }) => [invoice.id, lines]))
      assert.equal(walked.length, records.length)
      for (const { invoice, lines } of walked)
        assert.deepEqual(lines === null ? null : JSON.parse(lines), known.get(invoice.id), invoice.id)
    })

    it('shows one moment during writes, and does not delay writers', async t => {
      const { operator, writer, records } = await createStores(t, engine)
      const before = new Map(records.map(({ invoice }) => [invoice.id, invoice]))
      const found: Invoice[] = []
      for await (const batch of operator.walkInvoices({ customers: null, withLines: false })) {
        for (const { summary } of batch) found.push(JSON.parse(summary))
        // What is walked through last: changed, deleted and added.
        const late = records.filter(({ invoice }) => invoice.customer_id === 'cus_many').slice(0, 3)
        await writer.transaction(async tx => {
          await tx.saveInvoices([
            ...late.map(({ invoice }) => makeRecord({ ...invoice, number: `changed ${found.length}` })),
            makeRecord({ id: `in_new${found.length}`, customer_id: 'cus_zoe' }),
          ])
          await tx.deleteInvoice('cus_many', records.at(-1)?.invoice.id ?? '')
        })
      }
      assert.equal(found.length, before.size)
      for (const invoice of found) assert.deepEqual(invoice, before.get(invoice.id), invoice.id)
    })

    it('can be stopped before its end, repeatedly', async t => {
      const { operator } = await createStores(t, engine)
      for (let i = 0; i < 5; i++)
        for await (const batch of operator.walkInvoices({ customers: null, withLines: i % 2 === 0 })) {
          assert.equal(batch.length, i % 2 === 0 ? 50 : 500)
          break
        }
    })
  })

describe('a paused walk through a SQLite store', () => {
  it('continues from a copy after 5 s, so that the log can be written back', async t => {
    const [sqlite] = engines
    assert.ok(sqlite)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { writer, operator, url } = await createStores(t, sqlite)
    const walk = { customers: null, withLines: true }
    const before = await readWalk(operator, walk)
    const taken: string[] = []
    const db = new DatabaseSync(url.slice('sqlite:'.length))
    t.after(() => db.close())
    /** Whether a reader kept some of it from being written back. */
    const isHeldUp = () => db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 1
    for await (const batch of operator.walkInvoices(walk)) {
      taken.push(...batch.map(({ summary }) => summary))
      if (taken.length > batch.length) continue
      const changed = makeRecords().map(({ invoice }) => ({
        invoice: { ...invoice, total_cents: 7 },
        lines: null,
      }))
      await writer.transaction(tx => tx.saveInvoices(changed))
      assert.equal(isHeldUp(), true)
      t.mock.timers.tick(5_000)
      assert.equal(isHeldUp(), false)
    }
    assert.deepEqual(
      taken.map(text => JSON.parse(text)),
      before.map(({ invoice }) => invoice),
    )
  })
})
