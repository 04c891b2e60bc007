/** A customer's statement: complete, exact, and at every moment what the balance says. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type AccountStatement, entriesOf, type StatementEntry } from '../../src/domain/account.ts'
import type { CustomerBalance } from '../../src/domain/balance.ts'
import { isInForce } from '../../src/domain/document.ts'
import {
  type DocumentAbout,
  type Invoice,
  type InvoiceDocument,
  type InvoiceRecord,
  invoiceStatuses,
} from '../../src/domain/invoice.ts'
import { completePaymentFacts, type PaymentFacts } from '../../src/domain/payment.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { campaign } from '../support/checks/campaign.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { startOrdinary } from '../support/worlds/documents.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/worlds/records.ts'
import { assertError, type Service, startService } from '../support/worlds/service.ts'

const about = (type: string, gross_cents: number, more: Partial<DocumentAbout> = {}): DocumentAbout => ({
  ...{ id: 5, type, number: `${type} A/1`, date: '2026-03-20', gross_cents, total_cents: gross_cents },
  ...{ in_invoice_currency: null, status: 'final', ...more },
})
const documentOf = (...related: DocumentAbout[]): InvoiceDocument => ({
  ...{ ...exampleDocument, type: 'Invoice', number: 'FT A/1', date: '2026-03-03' },
  ...{ before_tax_cents: 10_000, tax_cents: 2_300, gross_cents: 12_300, total_cents: 12_300, related },
})
const paidOn = (amount_cents: number, day: string) => ({
  ...{ id: `pi_${day}`, amount_cents, paid_at: `${day}T10:00:00.000Z` },
})

/** Issued on 2 March with 123.00 in all; a document is of 3 March. */
test('an invoice gives the right entries in a statement', () => {
  type Row = [
    name: string,
    invoice: Partial<Invoice>,
    told: Partial<PaymentFacts>,
    document: InvoiceDocument | null,
    entries: string[],
  ]
  const [open, paid] = [{ status: 'open' }, { status: 'paid' }] as const
  const table: Row[] = [
    ['a draft', { status: 'draft' }, {}, null, []],
    ['an open invoice', open, {}, null, ['2026-03-02 invoice platform 12300']],
    ['with its document', open, {}, documentOf(), ['2026-03-03 invoice document 12300 FT A/1']],
    ['of zero', { ...open, total_cents: 0 }, {}, null, ['2026-03-02 invoice platform 0']],
    ['below zero', { ...open, total_cents: -500 }, {}, null, ['2026-03-02 invoice platform -500']],
    [
      'a payment of its day, and one to come',
      open,
      {
        amount_paid_cents: 300,
        payments: [paidOn(300, '2026-03-09'), { id: 'pi_x', amount_cents: 0, paid_at: null }],
      },
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-09 payment platform -300'],
    ],
    [
      'paid, of which the payments are not known',
      paid,
      { closed_at: '2026-03-12T10:00:00.000Z' },
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-12 payment sum -12300'],
    ],
    [
      'paid in parts, one by a receipt, of which a part is not known',
      paid,
      { payments: [paidOn(300, '2026-03-09'), paidOn(2_000, '2026-03-10')] },
      documentOf(about('Receipt', 2_000, { number: 'RG A/7' })),
      [
        '2026-03-03 invoice document 12300 FT A/1',
        '2026-03-09 payment platform -300',
        '2026-03-10 payment platform -2000 RG A/7',
        '2026-03-10 payment sum -10000',
      ],
    ],
    [
      'outside the platform, which counts nothing as paid',
      paid,
      { amount_paid_cents: 0 },
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-02 payment sum -12300'],
    ],
    [
      'a receipt without a payment',
      open,
      {},
      documentOf(about('Receipt', 900, { number: 'RG A/7' })),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-03-20 receipt document 0 RG A/7'],
    ],
    [
      'credit of before, of which a part is left',
      open,
      { starting_balance_cents: -20_000 },
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-02 balance platform -12300'],
    ],
    [
      'what was owed before',
      open,
      { starting_balance_cents: 700 },
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-02 balance platform 700'],
    ],
    [
      'a credit note in force, and a canceled one',
      open,
      { pre_payment_credit_cents: 2_300 },
      documentOf(
        about('CreditNote', 2_300, { number: 'NC A/4' }),
        about('CreditNote', 50, { status: 'canceled' }),
      ),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-03-20 credit_note document -2300 NC A/4'],
    ],
    [
      'a credit note that only a sum proves',
      open,
      { pre_payment_credit_cents: 2_300 },
      documentOf(),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-03-03 credit_note sum -2300'],
    ],
    [
      'a credit note after the payment',
      paid,
      { post_payment_credit_cents: 2_300, payments: [paidOn(12_300, '2026-03-09')] },
      documentOf(about('CreditNote', 2_300, { number: 'NC A/4' })),
      [
        '2026-03-03 invoice document 12300 FT A/1',
        '2026-03-20 credit_note document -2300 NC A/4',
        '2026-03-09 payment platform -12300',
        '2026-03-20 refund sum 2300',
      ],
    ],
    [
      'a credit note of all that the platform was not told of',
      open,
      {},
      documentOf(about('CreditNote', 12_300, { number: 'NC A/4' })),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-03-20 credit_note document -12300 NC A/4'],
    ],
    [
      'a debit note, which the platform does not ask for',
      open,
      {},
      documentOf(about('DebitNote', 400, { number: 'ND A/2' })),
      [
        '2026-03-03 invoice document 12300 FT A/1',
        '2026-03-20 debit_note document 400 ND A/2',
        '2026-03-20 other sum -400',
      ],
    ],
    [
      'voided',
      { status: 'void' },
      { closed_at: '2026-04-01T00:30:00.000Z' },
      documentOf(),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-04-01 void platform -12300'],
    ],
    [
      'voided, and credited whole',
      { status: 'void' },
      {},
      documentOf(about('CreditNote', 12_300, { number: 'NC A/4' })),
      ['2026-03-03 invoice document 12300 FT A/1', '2026-03-20 credit_note document -12300 NC A/4'],
    ],
    [
      'given up, after a part was paid',
      { status: 'uncollectible' },
      {
        amount_paid_cents: 300,
        payments: [paidOn(300, '2026-03-09')],
        closed_at: '2026-05-01T00:00:00.000Z',
      },
      null,
      [
        '2026-03-02 invoice platform 12300',
        '2026-03-09 payment platform -300',
        '2026-05-01 write_off platform -12000',
      ],
    ],
    [
      'given up on a day that is not known',
      { status: 'uncollectible' },
      {},
      null,
      ['2026-03-02 invoice platform 12300', '2026-03-02 write_off sum -12300'],
    ],
  ]
  for (const [name, fields, told, document, wanted] of table) {
    const invoice = makeInvoice(fields)
    const entries = entriesOf(invoice, completePaymentFacts(invoice, told), document)
    const written = entries.map(({ day, type, proof, cents, number }) =>
      [day, type, proof, cents, ...(number === null ? [] : [number])].join(' '),
    )
    assert.deepEqual(written, wanted, name)
  }
})

const statementPath = (customer: string, query = '') => `/api/v1/client/${customer}/statement${query}`

async function read<T>(service: Service, path: string): Promise<T> {
  const { status, text, json } = await service.get(path)
  assert.equal(status, 200, text)
  return json as T
}

/** All entries, page by page; each page agrees with the others about the sums. */
async function readAll(
  service: Service,
  customer: string,
  period: Record<string, string> = {},
  page_size = 7,
) {
  const entries: StatementEntry[] = []
  for (let page = 1, pages = 1; page <= pages; page++) {
    const query = `?${new URLSearchParams({ ...period, page: String(page), page_size: String(page_size) })}`
    const statement = await read<AccountStatement>(service, statementPath(customer, query))
    assert.equal(statement.page, page)
    entries.push(...statement.entries)
    pages = statement.total_pages
    if (page >= pages) {
      assert.equal(entries.length, statement.total)
      checkSums(statement, entries)
      return { ...statement, entries }
    }
  }
  return assert.fail()
}

/** Opening, running and closing balances follow from the entries. */
function checkSums({ currencies }: AccountStatement, entries: readonly StatementEntry[]): void {
  const running = new Map(currencies.map(({ currency, opening_cents }) => [currency, opening_cents]))
  const days = entries.map(({ day }) => day)
  assert.deepEqual(days, days.toSorted())
  for (const { currency, debit_cents, credit_cents, balance_cents } of entries) {
    running.set(currency, (running.get(currency) ?? Number.NaN) + debit_cents - credit_cents)
    assert.equal(balance_cents, running.get(currency))
  }
  for (const { currency, opening_cents, debit_cents, credit_cents, closing_cents } of currencies) {
    assert.equal(closing_cents, running.get(currency))
    assert.equal(closing_cents, opening_cents + debit_cents - credit_cents)
  }
}

/** What is owed less what stands in the customer's favour; a currency without an open invoice is settled. */
async function assertBalanced(service: Service, customer: string): Promise<AccountStatement> {
  const [statement, balance] = [
    await readAll(service, customer),
    await read<CustomerBalance>(service, `/api/v1/client/${customer}/balance`),
  ]
  const owed = new Map(
    balance.currencies.map(({ currency, remaining_cents, credit_cents }) => [
      currency,
      remaining_cents - credit_cents,
    ]),
  )
  for (const { currency, closing_cents } of statement.currencies)
    assert.equal(closing_cents, owed.get(currency) ?? 0, `${customer}: ${currency}`)
  const codes = statement.currencies.map(({ currency }) => currency)
  assert.deepEqual(codes, codes.toSorted())
  for (const currency of owed.keys()) assert.ok(codes.includes(currency))
  return statement
}

const day = fc.integer({ min: 0, max: 80 }).map(n => new Date(Date.UTC(2026, 1, 1 + n)).toISOString())
const cents = fc.integer({ min: 0, max: 20_000 })
const anyNote = fc
  .record({
    type: fc.constantFrom('CreditNote', 'DebitNote', 'Receipt', 'VatMossCreditNote', 'Odd'),
    gross: fc.oneof(cents, fc.constant(12_300)),
    status: fc.constantFrom('final', 'settled', 'canceled', 'draft'),
    date: fc.option(day),
  })
  .map(({ type, gross, status, date }) => about(type, gross, { status, date: date?.slice(0, 10) ?? null }))
const anyFacts = fc.record(
  {
    amount_paid_cents: cents,
    amount_remaining_cents: fc.integer({ min: -500, max: 20_000 }),
    pre_payment_credit_cents: cents,
    post_payment_credit_cents: cents,
    starting_balance_cents: fc.integer({ min: -20_000, max: 20_000 }),
    closed_at: fc.option(day),
    payments: fc.uniqueArray(
      fc.record({
        id: fc.constantFrom('pi_1', 'pi_2', 'pi_3'),
        amount_cents: cents,
        paid_at: fc.option(day),
      }),
      { maxLength: 3, selector: ({ id }) => id },
    ),
  },
  { requiredKeys: [] },
)
const anyRecord = fc
  .record({
    id: fc.integer({ min: 0, max: 4 }),
    status: fc.constantFrom('open', 'open', 'open', ...invoiceStatuses),
    currency: fc.constantFrom('eur', 'eur', 'usd', 'jpy'),
    total_cents: fc.integer({ min: -5_000, max: 20_000 }),
    issued_at: day,
    facts: anyFacts,
    notes: fc.option(fc.array(anyNote, { maxLength: 3 })),
  })
  .map(({ id, facts, notes, ...fields }): InvoiceRecord => {
    const its = notes === null ? {} : withDocument
    const { invoice } = makeRecord({ id: `in_${id}`, number: `N-${id}`, ...its, ...fields })
    const document = notes && documentOf(...notes)
    return { invoice, lines: null, document, payment: completePaymentFacts(invoice, facts) }
  })
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.array(anyRecord, { minLength: 1, maxLength: 5 }).map(save => ({ save })) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 4 }).map(remove => ({ remove: `in_${remove}` })) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.integer({ min: 0, max: 4 }), fc.option(fc.array(anyNote, { maxLength: 3 })))
      .map(([id, notes]) => ({ relink: `in_${id}`, document: notes && documentOf(...notes) })),
  },
)

for (const engine of engines)
  describe(`the statement on ${engine.name}`, () => {
    test('has entries that add up to the balance after every change', async t => {
      const service = await startService(t, engine, {})
      const known = new Map<string, Invoice>()
      let turn = 0
      await fc.assert(
        fc.asyncProperty(fc.array(anyStep, { minLength: 3, maxLength: 8 }), async steps => {
          const customer_id = `cus_turn${turn++}`
          const own = (id: string) => `${id}_${turn}`
          for (const step of steps) {
            await service.store.transaction(async tx => {
              if ('save' in step) {
                const records = step.save.map(record => {
                  const invoice = { ...record.invoice, id: own(record.invoice.id), customer_id }
                  known.set(invoice.id, invoice)
                  return { ...record, invoice }
                })
                await tx.saveInvoices(records)
              } else if ('remove' in step) await tx.deleteInvoice(customer_id, own(step.remove))
              else {
                const invoice = known.get(own(step.relink))
                if (invoice !== undefined) await tx.saveDerivedLinks([{ invoice, document: step.document }])
              }
            })
            await assertBalanced(service, customer_id)
          }
        }),
        { numRuns: campaign(25, 400), seed: 57 },
      )
      assert.equal(await service.store.checkCounts(), 0)
    })

    test('has each payment and each credit note in force exactly once', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 120, customers: 10 })
      const given: Engine = { name: 'given', createStore: async () => rig.url }
      const service = await startService(t, given)
      const invoices = [...rig.account.invoices.values()].filter(({ customer }) => customer !== null)
      const customers = [
        ...new Set((await rig.store.readInvoices(null, 1_000)).map(each => each.customer_id)),
      ]
      const entries: StatementEntry[] = []
      for (const customer of customers) entries.push(...(await assertBalanced(service, customer)).entries)
      const write = (all: { invoice_id: string; day: string; cents: number }[]) =>
        all.map(({ invoice_id, day, cents }) => `${invoice_id} ${day} ${cents}`).sort()
      const told = (type: string, proof: string) =>
        write(
          entries
            .filter(entry => entry.type === type && entry.proof === proof)
            .map(entry => ({ ...entry, cents: entry.credit_cents })),
        )
      const dayOf = (seconds: number | null) => new Date((seconds ?? 0) * 1000).toISOString().slice(0, 10)
      const payments = invoices.flatMap(({ id, payments, status }) =>
        status === 'draft'
          ? []
          : payments.data.flatMap(({ amount_paid, status_transitions: { paid_at } }) =>
              amount_paid ? { invoice_id: id, day: dayOf(paid_at), cents: amount_paid } : [],
            ),
      )
      assert.ok(payments.length > 30)
      assert.deepEqual(told('payment', 'platform'), write(payments))
      const notes: string[] = []
      for (const { id, customer_id } of await rig.store.readInvoices(null, 1_000)) {
        const { status, json } = await service.get(`/api/v1/client/${customer_id}/invoice/${id}/document`)
        const inForce = (status === 200 ? (json as InvoiceDocument).related : [])?.filter(isInForce) ?? []
        for (const { type, date, number } of inForce)
          if (type.endsWith('CreditNote')) notes.push(`${id} ${date} ${number}`)
      }
      const noted = entries.filter(({ type, proof }) => type === 'credit_note' && proof === 'document')
      assert.ok(notes.length > 0)
      assert.deepEqual(
        noted.map(({ invoice_id, day, number }) => `${invoice_id} ${day} ${number}`).sort(),
        notes.sort(),
      )
      const closed = invoices.filter(({ status }) => status === 'uncollectible')
      const givenUp = told('write_off', 'platform').map(text => text.split(' ').slice(0, 2).join(' '))
      for (const text of givenUp)
        assert.ok(
          closed.some(
            each => text === `${each.id} ${dayOf(each.status_transitions.marked_uncollectible_at)}`,
          ),
          text,
        )
      assert.ok(givenUp.length > 0)
      assert.deepEqual(
        entries.filter(({ type }) => type === 'other'),
        [],
      )
    })

    test('starts each period with the closing balance of the period before', async t => {
      const records = Array.from({ length: 30 }, (_, i) => {
        const issued_at = new Date(Date.UTC(2026, 0, 1 + 3 * i)).toISOString()
        return makeRecord({ id: `in_${i}`, issued_at, status: 'open', currency: i % 4 ? 'eur' : 'usd' })
      })
      const service = await startService(t, engine, { records })
      const all = await readAll(service, 'cus_ana')
      const february = await readAll(service, 'cus_ana', { from: '2026-02-01', to: '2026-02-28' })
      const before = await readAll(service, 'cus_ana', { to: '2026-01-31' })
      const after = await readAll(service, 'cus_ana', { from: '2026-03-01' })
      const part = [...before.entries, ...february.entries, ...after.entries]
      assert.deepEqual(part, all.entries)
      for (const [one, next] of [
        [before, february],
        [february, after],
      ] as const)
        assert.deepEqual(
          one.currencies.map(({ closing_cents }) => closing_cents),
          next.currencies.map(({ opening_cents }) => opening_cents),
        )
      const none = await readAll(service, 'cus_ana', { from: '2027-01-01' })
      assert.deepEqual([none.total, none.page, none.total_pages], [0, 1, 0])
      const last = await read<AccountStatement>(service, statementPath('cus_ana', '?page=99&page_size=8'))
      assert.deepEqual([last.page, last.entries.length], [4, 6])
      const most = await read<AccountStatement>(service, statementPath('cus_ana', '?page_size=1000'))
      assert.equal(most.page_size, 200)
    })

    test('has exact amounts beyond 2^53, and no entries of another customer', async t => {
      const total_cents = 9_007_199_254_740_991
      const records = [1, 2, 3].map(n => makeRecord({ id: `in_${n}`, status: 'open', total_cents }))
      const service = await startService(t, engine, { records })
      const { text } = await service.get(statementPath('cus_ana'))
      assert.match(text, /"closing_cents":27021597764222973[,}]/)
      assert.match(text, /"balance_cents":27021597764222973[,}]/)
      const { json: unknown } = await service.get(statementPath('cus_rui'))
      assert.deepEqual(unknown, {
        ...{ from: null, to: null, currencies: [], entries: [] },
        ...{ page: 1, page_size: 50, total: 0, total_pages: 0 },
      })
      const token = await service.createToken({ customers: ['cus_rui'] })
      assertError(await service.get(statementPath('cus_ana'), { token }), 403, 'insufficient_scope')
      for (const [query, param] of [
        ['from=2026-02-30', 'from'],
        ['to=today', 'to'],
        ['page=x', 'page'],
      ])
        assertError(await service.get(statementPath('cus_ana', `?${query}`)), 400, 'invalid_parameter', param)
      const first = await service.get(statementPath('cus_ana'))
      const held = { 'if-none-match': String(first.headers.etag) }
      assert.equal((await service.get(statementPath('cus_ana'), { headers: held })).status, 304)
      await service.save(makeRecord({ id: 'in_4', status: 'open' }))
      assert.equal((await service.get(statementPath('cus_ana'), { headers: held })).status, 200)
    })
  })
