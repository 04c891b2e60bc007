/** What `expand` adds to lists, searches and details; without it, every answer is as it was. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { dayMs, dayOf } from '../../src/domain/calendar.ts'
import type { PaymentBrief } from '../../src/domain/expanded.ts'
import { completePayment, expandLines, expansionColumns } from '../../src/domain/expansion.ts'
import type { Invoice, InvoiceDocument } from '../../src/domain/invoice.ts'
import { completePaymentFacts, type PaymentFacts } from '../../src/domain/payment.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import type { ListedInvoice } from '../../src/sdk/client.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/worlds/records.ts'
import { assertError, type Service, startService } from '../support/worlds/service.ts'

const today = '2026-10-28'
const noon = Date.parse(`${today}T12:00:00.000Z`)
const daysAgo = (days: number) => dayOf(noon - days * dayMs)

const document: InvoiceDocument = { ...exampleDocument, gross_cents: 12_300, related: [] }
const noteOf = (gross_cents: number, status = 'final') => ({
  ...{ id: 48_377, type: 'CreditNote', number: 'NC A/4', date: today, gross_cents, status },
  ...{ total_cents: gross_cents, in_invoice_currency: null },
})
const creditedBy = (...related: ReturnType<typeof noteOf>[]): InvoiceDocument => ({ ...document, related })

const payments = {
  fetchLines: async () => null,
  openPdf: async () => assert.fail(),
  findPaymentPage: async () => 'https://pay.example/',
}

function stopAt(t: TestContext): (moment: number) => void {
  let now = noon
  t.mock.method(Date, 'now', () => now)
  return moment => {
    now = moment
  }
}

test('an expanded invoice shows its remaining amount and whether it can be paid', () => {
  type Row = [
    name: string,
    invoice: Partial<Invoice>,
    told: Partial<PaymentFacts>,
    document: InvoiceDocument | null,
    brief: Partial<PaymentBrief>,
  ]
  const nothing = { due_date: null, paid_cents: 0, remaining_cents: 0, credited_cents: 0 }
  const quiet = { ...nothing, overdue: false, payable: false }
  const owed = { ...quiet, remaining_cents: 12_300, payable: true }
  const table: Row[] = [
    ['draft', { status: 'draft' }, {}, null, quiet],
    ['paid', { status: 'paid' }, {}, null, { ...quiet, paid_cents: 12_300 }],
    ['void', { status: 'void' }, {}, null, quiet],
    ['uncollectible', { status: 'uncollectible' }, { due_date: daysAgo(9) }, null, { due_date: daysAgo(9) }],
    ['open, without a due day', { status: 'open' }, {}, null, owed],
    ['due today', { status: 'open' }, { due_date: today }, null, { ...owed, due_date: today }],
    [
      'due yesterday',
      { status: 'open' },
      { due_date: daysAgo(1) },
      null,
      { ...owed, due_date: daysAgo(1), overdue: true },
    ],
    [
      'paid in part',
      { status: 'open' },
      { amount_paid_cents: 300 },
      null,
      { ...owed, paid_cents: 300, remaining_cents: 12_000 },
    ],
    [
      'open, and paid whole',
      { status: 'open' },
      { amount_paid_cents: 12_300, due_date: daysAgo(3) },
      null,
      { ...quiet, paid_cents: 12_300, due_date: daysAgo(3) },
    ],
    [
      'below zero',
      { status: 'open', total_cents: -1_121 },
      { due_date: daysAgo(3) },
      null,
      { due_date: daysAgo(3) },
    ],
    ['zero', { status: 'open', total_cents: 0 }, {}, null, quiet],
    ['credited in part', { status: 'open' }, {}, creditedBy(noteOf(300)), { ...owed, credited_cents: 300 }],
    [
      'credited in full',
      { status: 'open' },
      {},
      creditedBy(noteOf(12_000), noteOf(300)),
      { ...owed, payable: false, credited_cents: 12_300 },
    ],
    ['by a canceled note', { status: 'open' }, {}, creditedBy(noteOf(12_300, 'canceled')), owed],
  ]
  for (const [name, fields, told, its, brief] of table) {
    const invoice = makeInvoice(fields)
    const facts = completePaymentFacts(invoice, told)
    const stored = expansionColumns(invoice, facts, its).expanded_payment
    const shown = JSON.parse(completePayment(stored, { day: today, hasPage: true }))
    assert.deepEqual(shown, { ...quiet, ...brief }, name)
    const without = completePayment(stored, { day: today, hasPage: false })
    assert.equal(JSON.parse(without).payable, false, name)
  }
})

test('only the payment of an expanded invoice depends on the time of the request', () => {
  const name = '","overdue":"2020-01-01","payable":true,"'
  const summary = JSON.stringify({ display_name: name, a: `${name},"overdue":false,"payable":true,` })
  const document = JSON.stringify({ number: `,"overdue":false,"payable":true,` })
  const payment = '{"remaining_cents":5,"overdue":"2020-01-01","payable":true,"credited_cents":0}'
  const lines = [summary, document, payment, ''].join('\n')
  const moment = { day: today, hasPage: false }
  const [expanded] = JSON.parse(`[${expandLines(lines, ['payment', 'document'], moment)}]`)
  assert.deepEqual(expanded, {
    ...JSON.parse(summary),
    payment: { remaining_cents: 5, overdue: true, payable: false, credited_cents: 0 },
    document: JSON.parse(document),
  })
  assert.equal(expandLines('', ['document'], moment), '', 'an empty page')
})

const statuses = ['open', 'paid', 'draft', 'void', 'uncollectible'] as const

/** Every fourth with a document, that of every eighth credited in full; due days around today. */
const makeRecords = (count: number, customer_id = 'cus_ana') =>
  Array.from({ length: count }, (_, i) => {
    const fields = { customer_id, id: `in_${customer_id.slice(4)}${String(i).padStart(5, '0')}` }
    const status = statuses[i % 5] ?? 'open'
    const its = i % 4 === 0 ? withDocument : {}
    const record = makeRecord({
      ...fields,
      ...its,
      status,
      issued_at: new Date(noon - i * 3e6).toISOString(),
    })
    const due_date = i % 3 === 0 ? null : daysAgo((i % 7) - 2)
    return {
      ...record,
      ...(i % 4 === 0 && { document: i % 8 === 0 ? creditedBy(noteOf(12_300)) : document }),
      payment: completePaymentFacts(record.invoice, { due_date }),
    }
  })

const paths = {
  list: '/api/v1/client/cus_ana/invoices',
  detail: (id: string) => `/api/v1/client/cus_ana/invoice/${id}`,
}

/** The answer with `expand`, which without the added members is the answer without it, to the byte. */
async function expandedOf(service: Service, path: string): Promise<ListedInvoice[]> {
  const [sign, plain] = [path.includes('?') ? '&' : '?', await service.get(path)]
  assert.equal(plain.status, 200, plain.text)
  const expanded = await service.get(`${path}${sign}expand=payment,document`)
  const of = (json: { invoices?: ListedInvoice[] }) => json.invoices ?? [json as ListedInvoice]
  const given: ListedInvoice[] = JSON.parse(JSON.stringify(of(expanded.json)))
  for (const each of of(expanded.json)) {
    assert.deepEqual(Object.keys(each).slice(-2), ['document', 'payment'])
    delete each.document
    delete each.payment
  }
  assert.equal(JSON.stringify(expanded.json), plain.text)
  for (const [name, other] of [
    ['document', 'payment'],
    ['payment', 'document'],
  ] as const) {
    const one = await service.get(`${path}${sign}expand=${name}`)
    const wanted = given.map(({ [other]: _, ...rest }) => rest)
    assert.deepEqual(of(one.json), wanted, name)
  }
  return given
}

for (const engine of engines)
  describe(`the parameter expand on ${engine.name}`, () => {
    test('adds the same fields to every page, search and detail, and changes no other field', async t => {
      stopAt(t)
      const service = await startService(t, engine, { records: makeRecords(60), payments })
      const first = await expandedOf(service, paths.list)
      assert.deepEqual(first[0]?.document, {
        ...{ number: 'FR A/123', type: 'InvoiceReceipt', atcud: 'ABCD1234-123', date: '2026-03-02' },
        ...{ due_date: '2026-03-02', status: 'settled', pdf: `${paths.detail('in_ana00000')}/ix/download` },
      })
      assert.equal(first[1]?.document, null)
      const known = new Map<string, ListedInvoice>()
      for (const query of ['?page_size=50', '?page=2&page_size=50', '?page=99'])
        for (const each of await expandedOf(service, paths.list + query)) known.set(each.id, each)
      assert.equal(known.size, 60)
      assert.deepEqual(
        new Set([...known.values()].map(({ payment }) => `${payment?.overdue} ${payment?.payable}`)),
        new Set(['true true', 'true false', 'false true', 'false false']),
      )
      for (const query of [
        '?status=open',
        '?date_to=2026-10-27&ix_status=settled',
        '?q=lima',
        '?q=0001&status=paid',
      ])
        for (const each of await expandedOf(service, paths.list + query))
          assert.deepEqual(each, known.get(each.id))
      for (const { id, document, payment } of [...known.values()].slice(0, 8)) {
        const [detail] = await expandedOf(service, paths.detail(id))
        assert.deepEqual([detail?.document, detail?.payment], [document, payment])
      }
    })

    test('shows the document’s taxes when it has the invoice’s currency, and otherwise the payment platform’s taxes', async t => {
      const reason = 'reverse_charge'
      const taxes = [
        { rate_percent: 5.5, base_cents: 10_000, tax_cents: 550, reason: null },
        { rate_percent: 0, base_cents: null, tax_cents: 0, reason },
      ]
      const abroad = { ...document, currency: 'usd' }
      const kinds = [{ document }, { document: abroad }, {}, { document: { ...document, taxes: null } }]
      const wanted = [document.taxes, taxes, taxes, taxes]
      const made = makeRecords(2_100)
      const records = made.map(({ document: _, payment, ...record }, i) => {
        const { invoice } = record
        const facts = { ...payment, taxes: i % 8 < 4 ? taxes : null }
        return { ...record, invoice: { ...invoice, ...withDocument }, ...kinds[i % 4], payment: facts }
      })
      const service = await startService(t, engine, { records })
      const seen = new Map<string, ListedInvoice>()
      for (const query of ['', '?page_size=50', '?page=209', '?status=paid&page=2', '?q=lima&page=100']) {
        const sign = query === '' ? '?' : '&'
        const plain = await service.list(query)
        for (const expand of ['taxes', 'taxes,document,payment']) {
          const { json } = await service.list(`${query}${sign}expand=${expand}`)
          for (const invoice of json.invoices) {
            seen.set(invoice.id, { ...invoice })
            const i = made.findIndex(({ invoice: { id } }) => id === invoice.id)
            const known = i % 8 < 4 || i % 4 === 0
            assert.deepEqual(invoice.taxes, known ? wanted[i % 4] : null, invoice.id)
          }
          for (const invoice of json.invoices) for (const name of expand.split(',')) delete invoice[name]
          assert.equal(JSON.stringify(json), plain.text)
        }
      }
      assert.ok(seen.size > 60)
      for (const { id, taxes } of [...seen.values()].slice(0, 8)) {
        const { json } = await service.get(`${paths.detail(id)}?expand=taxes`)
        assert.deepEqual(json.taxes, taxes)
      }
    })

    test('adds the same fields for a customer with counters, and in searches', async t => {
      const service = await startService(t, engine, { records: makeRecords(2_100) })
      for (const query of ['?page=208', '?status=paid&page=3', '?q=lima&page=100'])
        assert.equal((await expandedOf(service, paths.list + query)).length, 10, query)
    })

    test('gives values that follow the day and the records, with a new ETag after each change', async t => {
      const setTime = stopAt(t)
      const record = makeRecord({ id: 'in_1', status: 'open', ...withDocument })
      const payment = completePaymentFacts(record.invoice, { due_date: today })
      const service = await startService(t, engine, { records: [{ ...record, payment, document }], payments })
      const ask = async (path: string) => {
        const { headers, json } = await service.get(`${path}?expand=payment`)
        const held = { 'if-none-match': String(headers.etag) }
        assert.equal((await service.get(`${path}?expand=payment`, { headers: held })).status, 304)
        const { overdue, payable } = (json.invoices?.[0] ?? json).payment
        return { overdue, payable, etag: headers.etag }
      }
      const seen: unknown[] = []
      for (const path of [paths.list, paths.detail('in_1')]) {
        setTime(Date.parse(`${today}T23:59:59.999Z`))
        const before = await ask(path)
        setTime(Date.parse(`${today}T23:59:59.999Z`) + 1)
        const after = await ask(path)
        assert.notEqual(before.etag, after.etag)
        seen.push(before.overdue, after.overdue, after.payable)
      }
      assert.deepEqual(seen, [false, true, true, false, true, true])
      await service.save({ ...record, payment, document: creditedBy(noteOf(12_300)) })
      assert.equal((await ask(paths.list)).payable, false)
      const page = await service.get(`${paths.detail('in_1')}/payments/page`)
      assertError(page, 409, 'not_payable')
    })

    test('marks no invoice as payable without a payment page', async t => {
      const records = [makeRecord({ id: 'in_1', status: 'open' })]
      for (const options of [{ payments, pay: false }, {}]) {
        const service = await startService(t, engine, { records, ...options })
        const { json } = await service.list('?expand=payment')
        assert.deepEqual(
          [json.invoices[0].payment.payable, json.invoices[0].payment.remaining_cents],
          [false, 12_300],
        )
      }
    })

    test('is refused with unknown values on list and detail', async t => {
      const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
      for (const path of [paths.list, paths.detail('in_1')]) {
        for (const value of ['lines', 'document,', 'document,lines', 'Document', 'document;payment', ','])
          assertError(await service.get(`${path}?expand=${value}`), 400, 'invalid_parameter', 'expand')
        for (const query of ['expand=document&expand=payment', 'expand[]=document'])
          assertError(await service.get(`${path}?${query}`), 400, 'invalid_parameter', 'expand')
        const [plain, empty] = [await service.get(path), await service.get(`${path}?expand=`)]
        assert.equal(empty.text, plain.text)
      }
      const { json } = await service.list('?expand=x')
      assert.equal(
        json.error.message,
        'expand must be one or more of document, payment, taxes, separated by commas.',
      )
    })
  })
