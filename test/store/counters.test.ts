/** Counters agree with the rows, whatever is written; and a large customer's list and search with the model. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type Invoice, invoiceStatuses } from '../../src/domain/invoice.ts'
import { serializeSums } from '../../src/domain/invoice-json.ts'
import type { ListQuery } from '../../src/domain/list-query.ts'
import { readFilterTexts } from '../../src/http/read-filter.ts'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { countedAbove } from '../../src/store/sql/counters.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import type { InvoiceQuery, WriteTransaction } from '../../src/store/store.ts'
import { campaign } from '../support/checks/campaign.ts'
import {
  expectedPage,
  expectedSummary,
  filterNames,
  filterValues,
  type Question,
} from '../support/checks/model.ts'
import { compileCache, quickLoading } from '../support/clients/compile-cache.ts'
import { engines, runSql } from '../support/databases/engines.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const ixStatuses = [null, 'settled', 'final', '', '-', '=x']
const names = ['Ana Lima', 'Padaria São Bento 77', 'ACME 100%_']
/** Sums of these pass 2^53. */
const extremes = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]
const taxIds = [null, 'PT123456789', '509442013']

const someInvoice = fc
  .record({
    serial: fc.nat(4_000),
    customer_id: fc.constantFrom('cus_ana', 'cus_ana', 'cus_ana', 'cus_bob'),
    day: fc.nat(150),
    status: fc.constantFrom(...invoiceStatuses),
    ix_status: fc.constantFrom(...ixStatuses),
    display_name: fc.constantFrom(...names),
    customer_tax_id: fc.constantFrom(...taxIds),
    ix_id: fc.option(fc.nat(9_999)),
    currency: fc.constantFrom('eur', 'eur', 'eur', 'jpy'),
    total_cents: fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.constantFrom(...extremes)),
    hour: fc.constantFrom(0, 12, 23.999_999),
  })
  .map(({ serial, day, hour, ...fields }) =>
    makeInvoice({
      ...fields,
      id: `in_${serial}`,
      number: `2026/${serial * 7919}`,
      issued_at: new Date(Date.UTC(1969, 10, 1) + day * 86_400_000 + hour * 3_600_000).toISOString(),
    }),
  )

/** Enough to be counted, over several months. */
const many = fc.sample(someInvoice, { numRuns: 6_000, seed: 2026 })

type Step = (tx: WriteTransaction, known: Map<string, Invoice>) => Promise<void>

function keyOf({ customer_id, id }: Pick<Invoice, 'customer_id' | 'id'>): string {
  return `${customer_id} ${id}`
}

const save: fc.Arbitrary<Step> = fc
  .array(someInvoice, { minLength: 1, maxLength: 6 })
  .map(invoices => async (tx, known) => {
    await tx.saveInvoices(invoices.map(invoice => ({ invoice, lines: null })))
    for (const invoice of invoices) known.set(keyOf(invoice), invoice)
  })
/** Before every other observation: of two late ones of an invoice, too, the first is kept. */
let lateStamp = 1_000_000
const saveLate: fc.Arbitrary<Step> = someInvoice.map(invoice => async (tx, known) => {
  await tx.saveInvoices([{ invoice, lines: null }], --lateStamp)
  if (!known.has(keyOf(invoice))) known.set(keyOf(invoice), invoice)
})
const remove: fc.Arbitrary<Step> = someInvoice.map(({ customer_id, id }) => async (tx, known) => {
  await tx.deleteInvoice(customer_id, id)
  known.delete(keyOf({ customer_id, id }))
})
const relink: fc.Arbitrary<Step> = someInvoice.map(
  ({ customer_id, id, ix_id, ix_status }) =>
    async (tx, known) => {
      const stored = known.get(keyOf({ customer_id, id }))
      if (stored === undefined) return
      const invoice = { ...stored, ix_id, ix_status }
      await tx.saveDerivedLinks([{ invoice, document: null }])
      known.set(keyOf(invoice), invoice)
    },
)
const transaction = fc.record({
  steps: fc.array(fc.oneof(save, save, saveLate, remove, relink), { minLength: 1, maxLength: 5 }),
  fails: fc.boolean(),
})

const ordinaryValues = filterNames.map(name => [name, fc.constantFrom(...filterValues(many)[name])])
const values: Partial<Record<keyof ListQuery, fc.Arbitrary<unknown>>> = {
  ...Object.fromEntries(ordinaryValues),
  page: fc.oneof(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 4_000 })),
  page_size: fc.integer({ min: 1, max: 50 }),
  status: fc.constantFrom(...invoiceStatuses),
  ix_status: fc.constantFrom('settled', 'final', '-', '=x', 'none'),
  date_from: fc.constantFrom('1969-11-03', '1969-12-01', '1970-01-01', '1970-02-15'),
  date_to: fc.constantFrom('1969-11-03', '1969-12-31', '1970-01-20', '1970-03-30'),
  q: fc.constantFrom(
    '7',
    '77',
    'in_',
    'n',
    'ana',
    'padaria 2026',
    '%',
    '_',
    '100%_',
    '2026 3',
    'PT509442013',
    '2026/7919',
    '79 9 7',
    'ana 2026 7 9',
    '7 bento 0 2026 9',
    'ana 509442013 7 7',
    'zz',
    '\\',
    '-',
  ),
}
const someQuestion = fc.record(values, { requiredKeys: [] }) as fc.Arbitrary<Question>

for (const engine of engines) {
  describe(`counters on ${engine.name}`, () => {
    test('agree with the rows after any writes, and so do lists, sums and searches', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      let known = new Map(many.map(invoice => [keyOf(invoice), invoice]))
      await writer.transaction(tx => tx.saveInvoices(many.map(invoice => ({ invoice, lines: null }))))
      const { total } = await reader.listInvoices({ customer_id: 'cus_ana', page: 1, page_size: 1 })
      assert.ok(total > countedAbove, `${total} are counted`)
      assert.equal(await writer.checkCounts(), 0)
      // Alone in its counter, which goes with it, or never comes.
      const alone = makeInvoice({ id: 'in_alone', customer_id: 'cus_ana', currency: 'usd' })
      const add = (tx: WriteTransaction) => tx.saveInvoices([{ invoice: alone, lines: null }])
      const take = (tx: WriteTransaction) => tx.deleteInvoice(alone.customer_id, alone.id)
      for (const steps of [[add], [take], [add, take]]) {
        await writer.transaction(async tx => {
          for (const step of steps) await step(tx)
        })
        assert.equal(await writer.checkCounts(), 0)
      }
      const transactions = fc.array(transaction, { minLength: 1, maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(
          transactions,
          fc.array(someQuestion, { minLength: 6, maxLength: 6 }),
          async (given, asked) => {
            for (const { steps, fails } of given) {
              const next = new Map(known)
              const written = writer.transaction(async tx => {
                for (const step of steps) await step(tx, next)
                if (fails) throw new Error('on the way')
              })
              if (fails) await assert.rejects(written, /on the way/)
              else {
                await written
                known = next
              }
            }
            assert.equal(await writer.checkCounts(), 0)
            for (const customer of ['cus_ana', 'cus_bob']) {
              const { sums, open } = await reader.readSums(customer)
              const summary = serializeSums(sums, new Map(), open)
              assert.equal(summary, expectedSummary([...known.values()], customer))
            }
            // The one without filters is answered from what is kept of the customer.
            for (const customer of ['cus_ana', 'cus_bob'])
              for (const question of [{}, ...asked] as Question[]) {
                const expected = expectedPage([...known.values()], customer, question)
                const { page: askedPage = 1, page_size = 10, ...texts } = question
                const { summaries, total, page } = await reader.listInvoices({
                  customer_id: customer,
                  page: askedPage,
                  page_size,
                  ...readFilterTexts(texts),
                })
                const ids = JSON.parse(`[${summaries}]`).map(({ id }: Invoice) => id)
                assert.deepEqual(
                  [total, page, ids],
                  [expected.total, expected.page, expected.invoices.map(({ id }) => id)],
                  `${customer} ${JSON.stringify(question)}`,
                )
              }
          },
        ),
        { numRuns: campaign(6, 300), seed: 2026 },
      )
      await reader.close()
      await writer.close()
    })

    test('agree with the rows after a writer is killed during writes', async t => {
      const url = await engine.createStore(t)
      const script = new URL('../support/databases/write-endlessly.ts', import.meta.url).pathname
      const large = await openWriteStore(url)
      await large.transaction(tx => tx.saveInvoices(many.map(invoice => ({ invoice, lines: null }))))
      await large.close()
      for (const [turns, patience] of [
        [2, 1],
        [2, 37],
        [2, 90],
      ] as const) {
        const child = spawn(process.execPath, [script, url, String(turns)], {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: { ...process.env, NODE_COMPILE_CACHE: compileCache, ...quickLoading },
        })
        await once(child.stdout, 'data')
        await sleep(patience)
        child.kill('SIGKILL')
        await once(child, 'exit')
        const writer = await openWriteStore(url)
        assert.equal(await writer.checkCounts(), 0)
        await writer.close()
      }
    })

    test('are read only for the totals of filtered lists and deep pages', async t => {
      const url = await engine.createStore(t)
      const writer = await openWriteStore(url)
      await writer.transaction(tx => tx.saveInvoices(many.map(invoice => ({ invoice, lines: null }))))
      await writer.close()
      // They are wrong now: an answer shows where it comes from.
      await damageStore(url, 'UPDATE counters SET n = n + 1')
      const reader = await openReadStore(url)
      const known = [...new Map(many.map(invoice => [keyOf(invoice), invoice])).values()]
      const ask = async (question: Partial<InvoiceQuery>, matches: (invoice: Invoice) => boolean) => {
        const query = { customer_id: 'cus_ana', page: 1, page_size: 10, ...question }
        const { total, summaries } = await reader.listInvoices(query)
        const counted = known.filter(invoice => invoice.customer_id === 'cus_ana' && matches(invoice)).length
        return [total === counted ? 'rows' : 'counters', summaries.length > 0]
      }
      const month = Date.UTC(1970, 0)
      const all = () => true
      assert.deepEqual(await ask({}, all), ['rows', true])
      assert.deepEqual(await ask({ page_size: 9 }, all), ['rows', true])
      assert.deepEqual(await ask({ page: 2 }, all), ['rows', true])
      assert.deepEqual(await ask({ page: countedAbove / 10 + 1 }, all), ['rows', true])
      assert.deepEqual(await ask({ page: countedAbove / 10 + 2 }, all), ['counters', true])
      assert.deepEqual(await ask({ status: 'paid' }, ({ status }) => status === 'paid'), ['counters', true])
      assert.deepEqual(await ask({ ix_status: 'final' }, ({ ix_status }) => ix_status === 'final'), [
        'counters',
        true,
      ])
      const isFrom = ({ issued_at }: Invoice) => Date.parse(issued_at) >= month
      assert.deepEqual(await ask({ issued_from: month }, isFrom), ['counters', true])
      assert.deepEqual(await ask({ issued_before: month }, invoice => !isFrom(invoice)), ['counters', true])
      const hasWord = ({ display_name }: Invoice) => display_name.includes('Bento')
      assert.deepEqual(await ask({ words: searchWords('bento') }, hasWord), ['rows', true])
      await reader.close()
    })

    test('are found damaged and repaired, after which the list is correct again', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      await writer.transaction(tx => tx.saveInvoices(many.map(invoice => ({ invoice, lines: null }))))
      const damages = [
        "UPDATE counters SET n = n + 1 WHERE status = 'paid'",
        "UPDATE counters SET total_cents = total_cents + 1 WHERE status = 'paid'",
        "DELETE FROM counters WHERE ix = '=settled'",
        "INSERT INTO counters (customer_id, month, status, ix, currency, n, total_cents) VALUES ('cus_nobody', '2026-01', 'paid', '-', 'eur', 9, 9)",
        "UPDATE customers SET total = total + 5 WHERE customer_id = 'cus_bob'",
        "DELETE FROM customers WHERE customer_id = 'cus_ana'",
        "UPDATE customers SET counted = false WHERE customer_id = 'cus_ana'",
      ]
      const question = { customer_id: 'cus_ana', page: 9, page_size: 10, ix_status: 'settled' }
      const ask = async () => {
        const { version: _, ...page } = await reader.listInvoices(question)
        const { summaries } = await reader.listInvoices({ customer_id: 'cus_ana', page: 1, page_size: 10 })
        return { ...page, first: summaries, sums: (await reader.readSums('cus_ana')).sums.length }
      }
      const before = await ask()
      for (const damage of damages) {
        await damageStore(url, damage)
        const wrong = await writer.checkCounts()
        assert.ok(wrong > 0, damage)
        assert.equal(await writer.repairCounts(), wrong, damage)
        assert.equal(await writer.checkCounts(), 0, damage)
        assert.deepEqual(await ask(), before, damage)
      }
      await reader.close()
      await writer.close()
    })
  })
}

async function damageStore(url: string, sql: string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await runSql(url, `SET search_path = fatura; ${sql}`)
    return
  }
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(sql)
  db.close()
}
