/** What a customer has to pay: by currency, since when, what stands beside it, and the open invoices themselves. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { bucketOf, daysOverdue, type OpenSum, sumBalances } from '../../src/domain/balance.ts'
import { dayMs, dayOf } from '../../src/domain/calendar.ts'
import { noClaim } from '../../src/domain/document.ts'
import type { Invoice, InvoiceRecord } from '../../src/domain/invoice.ts'
import { completePaymentFacts, type PaymentFacts } from '../../src/domain/payment.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const path = '/api/v1/client/cus_ana/balance'
const summaryPath = '/api/v1/client/cus_ana/summary'
const today = '2026-10-28'
const noon = Date.parse(`${today}T12:00:00.000Z`)

/** The day so many days before today. */
const daysAgo = (days: number) => dayOf(noon - days * dayMs)

/** An open invoice, with what is told of its payment. */
function open(
  id: string,
  total_cents: number,
  told: Partial<PaymentFacts> = {},
  more: Partial<Invoice> = {},
) {
  const record = makeRecord({ id, status: 'open', total_cents, ...more })
  return { ...record, payment: completePaymentFacts(record.invoice, told) } satisfies InvoiceRecord
}

function stopAt(t: TestContext): (moment: number) => void {
  let now = noon
  t.mock.method(Date, 'now', () => now)
  return moment => {
    now = moment
  }
}

const payments = {
  fetchLines: async () => null,
  openPdf: async () => assert.fail(),
  findPaymentPage: async () => 'https://pay.example/',
}

test('an invoice is overdue from the day after its due day, and ages in steps of 30 days', () => {
  const table: [dueDate: string | null, days: number, bucket: string][] = [
    [null, 0, 'not_overdue_cents'],
    ['2026-10-29', 0, 'not_overdue_cents'],
    ['2026-10-28', 0, 'not_overdue_cents'],
    ['2026-10-27', 1, 'overdue_1_30_cents'],
    ['2026-09-28', 30, 'overdue_1_30_cents'],
    ['2026-09-27', 31, 'overdue_31_60_cents'],
    ['2026-08-29', 60, 'overdue_31_60_cents'],
    ['2026-08-28', 61, 'overdue_61_90_cents'],
    ['2026-07-30', 90, 'overdue_61_90_cents'],
    ['2026-07-29', 91, 'overdue_over_90_cents'],
    ['2016-02-29', 3_894, 'overdue_over_90_cents'],
  ]
  for (const [dueDate, days, bucket] of table) {
    assert.equal(daysOverdue(dueDate, today), days, String(dueDate))
    assert.equal(bucketOf(daysOverdue(dueDate, today)), bucket, String(dueDate))
  }
})

test('a balance separates credit from debt, and one currency from another', () => {
  const sum = (fields: Partial<OpenSum>): OpenSum => ({
    ...{ currency: 'eur', due_date: null, count: 1, to_pay_count: 0, to_pay_cents: 0n },
    ...{ in_favour_count: 0, in_favour_cents: 0n, ...fields },
  })
  const [eur, usd] = sumBalances(
    [
      sum({ currency: 'usd', due_date: '2026-10-01', to_pay_count: 1, to_pay_cents: 5n }),
      sum({ due_date: '2026-07-01', in_favour_count: 1, in_favour_cents: 900n }),
      sum({
        due_date: '2026-09-01',
        to_pay_count: 2,
        to_pay_cents: 100n,
        in_favour_count: 1,
        in_favour_cents: 7n,
      }),
      sum({ due_date: '2026-08-15', to_pay_count: 1, to_pay_cents: 10n }),
      sum({ to_pay_count: 1, to_pay_cents: 1n }),
    ],
    today,
  )
  assert.deepEqual(eur, {
    ...{ currency: 'eur', remaining_cents: 111n, count: 4, overdue_cents: 110n, overdue_count: 3 },
    overdue_since: '2026-08-15',
    aging: {
      not_overdue_cents: 1n,
      overdue_1_30_cents: 0n,
      overdue_31_60_cents: 100n,
      overdue_61_90_cents: 10n,
      overdue_over_90_cents: 0n,
    },
    ...{ credit_cents: 907n, credit_count: 2 },
  })
  assert.deepEqual([usd?.currency, usd?.overdue_cents], ['usd', 5n])
})

for (const engine of engines)
  describe(`the balance on ${engine.name}`, () => {
    test('is the sum of the remaining amounts of open invoices with a positive total', async t => {
      stopAt(t)
      const records = [
        open('in_old', 100_000, { due_date: daysAgo(100), amount_paid_cents: 40_000 }),
        open('in_late', 20_000, { due_date: daysAgo(1), starting_balance_cents: -5_000 }),
        open('in_today', 3_000, { due_date: today, pre_payment_credit_cents: 1_000 }),
        open('in_soon', 400, { due_date: daysAgo(-10), starting_balance_cents: 50 }),
        open('in_now', 7),
        open('in_credit', -11_121, { due_date: daysAgo(200) }),
        open('in_settled', 900, { amount_paid_cents: 900, due_date: daysAgo(5) }),
        open('in_yen', 5_000, { due_date: daysAgo(45) }, { currency: 'jpy' }),
        makeRecord({ id: 'in_draft', status: 'draft', total_cents: 1_000_000 }),
        makeRecord({ id: 'in_paid', status: 'paid', total_cents: 1_000_000 }),
        makeRecord({ id: 'in_void', status: 'void', total_cents: 1_000_000 }),
        makeRecord({ id: 'in_lost', status: 'uncollectible', total_cents: 1_000_000 }),
        open('in_bob', 9, {}, { customer_id: 'cus_bob' }),
      ]
      const service = await startService(t, engine, { records, payments })
      const { json, headers } = await service.get(path)
      assert.equal(headers['content-type'], 'application/json')
      assert.equal(json.day, today)
      assert.deepEqual(json.currencies, [
        {
          ...{ currency: 'eur', remaining_cents: 77_457, count: 5, overdue_cents: 75_000, overdue_count: 2 },
          overdue_since: daysAgo(100),
          aging: {
            not_overdue_cents: 2_457,
            overdue_1_30_cents: 15_000,
            overdue_31_60_cents: 0,
            overdue_61_90_cents: 0,
            overdue_over_90_cents: 60_000,
          },
          ...{ credit_cents: 11_121, credit_count: 1 },
        },
        {
          ...{ currency: 'jpy', remaining_cents: 5_000, count: 1, overdue_cents: 5_000, overdue_count: 1 },
          overdue_since: daysAgo(45),
          aging: {
            not_overdue_cents: 0,
            overdue_1_30_cents: 0,
            overdue_31_60_cents: 5_000,
            overdue_61_90_cents: 0,
            overdue_over_90_cents: 0,
          },
          ...{ credit_cents: 0, credit_count: 0 },
        },
      ])
      const shown = [
        'id',
        'total_cents',
        'paid_cents',
        'remaining_cents',
        'due_date',
        'days_overdue',
        'can_be_paid',
      ]
      assert.deepEqual(
        json.invoices.map((invoice: Record<string, unknown>) => shown.map(name => invoice[name])),
        [
          ['in_credit', -11_121, 0, 0, daysAgo(200), 0, false],
          ['in_old', 100_000, 40_000, 60_000, daysAgo(100), 100, true],
          ['in_yen', 5_000, 0, 5_000, daysAgo(45), 45, true],
          ['in_settled', 900, 900, 0, daysAgo(5), 0, false],
          ['in_late', 20_000, 0, 15_000, daysAgo(1), 1, true],
          ['in_now', 7, 0, 7, null, 0, true],
          ['in_today', 3_000, 0, 2_000, today, 0, true],
          ['in_soon', 400, 0, 450, daysAgo(-10), 0, true],
        ],
      )
      assert.equal(json.more, 0)
      const { currencies } = (await service.get(summaryPath)).json
      assert.deepEqual(
        currencies.map((sum: Record<string, unknown>) => [sum.currency, sum.remaining_cents]),
        [
          ['eur', 77_457],
          ['jpy', 5_000],
        ],
      )
    })

    test('follows payments and the UTC day, and its ETag changes with both', async t => {
      const moveTo = stopAt(t)
      const invoice = open('in_1', 100, { due_date: today })
      const service = await startService(t, engine, { records: [invoice] })
      const first = await service.get(path)
      const held = { headers: { 'if-none-match': String(first.headers.etag) } }
      assert.equal(first.json.currencies[0].overdue_cents, 0)
      assert.equal((await service.get(path, held)).status, 304)
      moveTo(Date.parse(`${today}T23:59:59.999Z`))
      assert.equal((await service.get(path, held)).status, 304)
      moveTo(Date.parse(`${today}T23:59:59.999Z`) + 1)
      const next = await service.get(path, held)
      assert.deepEqual(
        [next.status, next.json.day, next.json.currencies[0].overdue_cents],
        [200, daysAgo(-1), 100],
      )
      await service.save({
        ...invoice,
        payment: { ...invoice.payment, amount_paid_cents: 30, amount_remaining_cents: 70 },
      })
      const paid = await service.get(path, { headers: { 'if-none-match': String(next.headers.etag) } })
      assert.deepEqual([paid.status, paid.json.currencies[0].remaining_cents], [200, 70])
      const head = await service.get(path, { method: 'HEAD' })
      assert.deepEqual([head.status, head.text, head.headers.etag], [200, '', paid.headers.etag])
      const post = await service.get(path, { method: 'POST' })
      assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD, OPTIONS'])
    })

    test('shows a hundred invoices by due date, and the number of all others', async t => {
      stopAt(t)
      const dueDays = Array.from({ length: 250 }, (_, i) =>
        i % 5 === 4 ? null : daysAgo(120 - ((i * 37) % 250)),
      )
      const records = dueDays.map((due_date, i) =>
        open(`in_${String(i).padStart(3, '0')}`, 100 + i, { due_date }),
      )
      const service = await startService(t, engine, { records })
      const expected = records
        .toSorted((a, b) => compare(rankOf(a), rankOf(b)) || compare(a.invoice.id, b.invoice.id))
        .map(({ invoice }) => invoice.id)
      const { json } = await service.get(path)
      assert.deepEqual(
        json.invoices.map(({ id }: Invoice) => id),
        expected.slice(0, 100),
      )
      assert.equal(json.more, 150)
      assert.equal(json.currencies[0].count, 250)
      // Fewer are overdue, and so those without a due day and the others are shown too.
      await service.save(
        ...records.slice(0, 160).map(({ invoice }) => makeRecord({ ...invoice, status: 'paid' })),
      )
      const left = await service.get(path)
      const still = expected.filter(id => Number(id.slice(3)) >= 160)
      assert.deepEqual(
        left.json.invoices.map(({ id }: Invoice) => id),
        still,
      )
      assert.equal(left.json.more, 0)
      assert.ok(left.json.invoices.some(({ due_date }: { due_date: string | null }) => due_date === null))
    })

    test('is exact for a large customer without counters, and beyond 2^53', async t => {
      stopAt(t)
      const huge = Number.MAX_SAFE_INTEGER
      const records = Array.from({ length: 2_500 }, (_, i) =>
        open(`in_${i}`, i % 2 === 0 ? huge : -huge, { due_date: daysAgo(i % 120) }),
      )
      const service = await startService(t, engine, { records })
      const sum = 1_250n * BigInt(huge)
      for (const asked of [path, summaryPath])
        assert.ok((await service.get(asked)).text.includes(`"remaining_cents":${sum},`), asked)
      assert.ok((await service.get(path)).text.includes(`"credit_cents":${sum},"credit_count":1250`))
      await service.save(
        ...records.slice(0, 100).map(({ invoice }) => makeRecord({ ...invoice, status: 'paid' })),
      )
      const left = 1_200n * BigInt(huge)
      for (const asked of [path, summaryPath])
        assert.ok((await service.get(asked)).text.includes(`"remaining_cents":${left},`), asked)
    })

    test('marks an invoice as payable while an amount remains and its document is not fully credited', async t => {
      stopAt(t)
      const credited = (total_cents: number, status = 'final') => ({
        ...exampleDocument,
        related: [
          {
            ...{ id: 2, type: 'CreditNote', number: 'NC A/2', date: today, status },
            ...{ gross_cents: total_cents, total_cents, in_invoice_currency: null },
          },
        ],
      })
      const whole = exampleDocument.gross_cents ?? 0
      const records = [
        { ...open('in_1', 100), document: credited(whole) },
        { ...open('in_2', 100), document: credited(whole - 1) },
        { ...open('in_3', 100), document: credited(whole, 'canceled') },
        { ...open('in_4', 100), document: exampleDocument },
        open('in_5', 100, { amount_paid_cents: 100 }),
        open('in_6', -100),
        open('in_7', 100, { pre_payment_credit_cents: 100 }),
      ]
      const payable = ['in_2', 'in_3', 'in_4']
      const service = await startService(t, engine, { records, payments })
      const answer = await service.get(path)
      const ids = answer.json.invoices.flatMap((each: { id: string; can_be_paid: boolean }) =>
        each.can_be_paid ? each.id : [],
      )
      assert.deepEqual(ids, payable)
      for (const { invoice } of records) {
        const page = await service.get(`/api/v1/client/cus_ana/invoice/${invoice.id}/payments/page`)
        assert.equal(page.status, payable.includes(invoice.id) ? 200 : 409, invoice.id)
      }
      for (const without of [{ payments, pay: false }, {}]) {
        const other = await startService(t, engine, { records, ...without })
        const { json, headers } = await other.get(path)
        assert.ok(json.invoices.every((each: { can_be_paid: boolean }) => !each.can_be_paid))
        assert.notEqual(headers.etag, answer.headers.etag)
      }
    })

    test('shows a certified credit note beside the debt when Stripe does not know it', async t => {
      stopAt(t)
      const record = { ...open('in_1', 12_300, { pre_payment_credit_cents: 400 }), claim: noClaim }
      const service = await startService(t, engine, { records: [record] })
      const credit = async () => {
        const [{ remaining_cents, credit_cents }] = (await service.get(path)).json.currencies
        return [remaining_cents, credit_cents]
      }
      assert.deepEqual(await credit(), [11_900, 0])
      const note = {
        id: 2,
        type: 'CreditNote',
        number: 'NC A/2',
        date: today,
        gross_cents: 1_000,
        total_cents: 1_000,
        in_invoice_currency: null,
        status: 'final',
      }
      const document = { ...exampleDocument, related: [note] }
      await service.store.transaction(tx => tx.saveDerivedLinks([{ invoice: record.invoice, document }]))
      assert.deepEqual(await credit(), [11_900, 600])
      assert.equal((await service.get(path)).json.invoices[0].credit_cents, 600)
      await service.store.transaction(tx =>
        tx.saveDerivedLinks([{ invoice: record.invoice, document: null }]),
      )
      assert.deepEqual(await credit(), [11_900, 0])
    })

    test('is zero for an unknown customer, and refused for another customer’s token', async t => {
      stopAt(t)
      const service = await startService(t, engine, { records: [open('in_1', 100)] })
      const unknown = await service.get('/api/v1/client/cus_nobody/balance')
      assert.deepEqual(
        [unknown.status, unknown.json],
        [200, { day: today, currencies: [], invoices: [], more: 0 }],
      )
      const token = await service.createToken({ customers: ['cus_bob'] })
      assert.equal((await service.get(path, { token })).json.error.code, 'insufficient_scope')
      assert.equal((await service.get(path, { token: null })).json.error.code, 'missing_token')
      assert.equal((await service.get('/api/v1/client/ana/balance')).json.error.param, 'customerId')
    })
  })

/** Overdue ones by their due days, then those without one, then the rest. */
function rankOf({ payment: { due_date } }: { payment: PaymentFacts }): string {
  if (due_date === null) return '1'
  return `${due_date < today ? '0' : '2'} ${due_date}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
