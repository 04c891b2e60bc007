/** Stripe's invoices and lines to ours, from the payloads in `payloads.json`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Stripe } from 'stripe'
import { type Invoice, invoiceFields, type Line, lineFields } from '../../../src/domain/invoice.ts'
import type { PaymentFacts } from '../../../src/domain/payment.ts'
import type { Refusal } from '../../../src/sources/source.ts'
import { invoiceShape, lineShape } from '../../../src/sources/stripe/invoice-shape.ts'
import { readPaymentPage } from '../../../src/sources/stripe/list-payments.ts'
import {
  divide,
  mapLine,
  percentageOf,
  rateIds,
  ratioPercent,
} from '../../../src/sources/stripe/map-invoice.ts'
import { mapPaymentFacts } from '../../../src/sources/stripe/map-payment.ts'
import { StripeSdk } from '../../../src/sources/stripe/sdk.ts'
import { readRecord } from '../../../src/sync/import/check-record.ts'
import { mapStored } from '../../support/worlds/map-stored.ts'
import { readPayloads } from '../../support/worlds/payloads.ts'

interface Payload {
  about: string
  invoice: Stripe.Invoice
  lines?: Stripe.InvoiceLineItem[]
  rates: Record<string, number>
  previous: Invoice | null
  expected: {
    invoice: Invoice | { refusal: Refusal }
    rateIds: string[]
    lines?: Line[]
    payment?: PaymentFacts
  }
}

const payloads = readPayloads<Payload>(new URL('payloads.json', import.meta.url))
const names = [...payloads.keys()]
const read = (name: string): Payload => structuredClone(payloads.get(name) ?? assert.fail(name))

/** As retrieve and list hand it over: the decimals are objects. */
function withDecimals(name: string): Payload {
  return JSON.parse(JSON.stringify(read(name)), (key, value) =>
    /^(quantity|unit_amount)_decimal$/.test(key) && typeof value === 'string'
      ? Stripe.Decimal.from(value)
      : value,
  )
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) freeze(inner)
  return Object.freeze(value)
}

/** Only what the contract has, and of its types. */
function assertOurs(invoice: Invoice, lines: readonly Line[]): void {
  assert.deepEqual(Object.keys(invoice).sort(), [...invoiceFields].sort())
  for (const line of lines) assert.deepEqual(Object.keys(line).sort(), [...lineFields].sort())
  const checked = readRecord({ ...invoice, lines })
  assert.ok('record' in checked, JSON.stringify(checked))
}

function check(payload: Payload): void {
  const { invoice, lines = [], rates, previous, expected } = freeze(payload)
  assert.deepEqual(rateIds(invoice), expected.rateIds)
  const mappedLines = lines.map(mapLine)
  const mapped = mapStored(invoice, new Map(Object.entries(rates)), previous, mappedLines)
  assert.deepEqual('refusal' in mapped ? mapped : mapped.invoice, expected.invoice)
  assert.deepEqual(mappedLines, expected.lines ?? [])
  if (!('invoice' in mapped)) return
  assertOurs(mapped.invoice, mappedLines)
  const payments = invoice.payments == null ? null : readPaymentPage(invoice.payments).payments
  const facts = mapPaymentFacts(invoice, mapped.invoice, new Map(Object.entries(rates)), payments)
  if (expected.payment !== undefined) assert.deepEqual(facts, expected.payment)
}

test('every Stripe payload passes the check of its form, with decimals as text or objects', () => {
  const nameless = names.filter(name => read(name).invoice.id === undefined)
  assert.deepEqual(nameless, ['preview-without-id'])
  for (const name of names.filter(name => !nameless.includes(name)))
    for (const { invoice, lines = [] } of [read(name), withDecimals(name)]) {
      assert.equal(invoiceShape.misfit(invoice), null, name)
      for (const line of lines) assert.equal(lineShape.misfit(line), null, name)
    }
})

describe('the mapping of a Stripe invoice', () => {
  for (const name of names)
    test(`${name}: ${read(name).about}`, () => {
      check(read(name))
      check(withDecimals(name))
    })

  test('is tested with both forms of decimals and every reason of refusal', () => {
    const decimals = names.flatMap(name => withDecimals(name).lines ?? [])
    assert.ok(decimals.some(line => typeof line.quantity_decimal === 'object' && line.quantity_decimal))
    assert.ok(decimals.some(line => typeof line.pricing?.unit_amount_decimal === 'object'))
    const refusals = names
      .map(read)
      .map(({ expected }) => 'refusal' in expected.invoice && expected.invoice.refusal)
    assert.deepEqual([...new Set(refusals)].sort(), [false, 'no_customer', 'preview', 'unknown_status'])
  })

  test('changes nothing in an invoice that is already mapped', () => {
    for (const { invoice, rates, previous, lines = [] } of names.map(read)) {
      const known = new Map(Object.entries(rates))
      const first = mapStored(invoice, known, previous, lines.map(mapLine))
      if ('invoice' in first)
        assert.deepEqual(mapStored(invoice, known, first.invoice, lines.map(mapLine)), first)
    }
  })
})

test('Stripe’s decimals are mapped alike as objects of a list and as text of an event', async t => {
  const { lines = [], expected } = read('line-unit-amount-decimals')
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ object: 'list', data: lines, has_more: false, url: '/v1/invoices/in_1/lines' }),
    )
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stripe = new Stripe('sk_test_1', { host: '127.0.0.1', port, protocol: 'http', telemetry: false })

  const listed = await stripe.invoices.listLineItems('in_1')
  assert.equal(typeof listed.data[0]?.pricing?.unit_amount_decimal, 'object')
  assert.deepEqual(listed.data.map(mapLine), expected.lines)

  const payload = JSON.stringify({ id: 'evt_1', object: 'event', type: 'x', data: { object: lines } })
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_1' })
  const event = stripe.webhooks.constructEvent(payload, header, 'whsec_1')
  const sent = event.data.object as unknown as Stripe.InvoiceLineItem[]
  assert.equal(typeof sent[0]?.pricing?.unit_amount_decimal, 'string')
  assert.deepEqual(sent.map(mapLine), expected.lines)
})

test('an invoice with more than a hundred lines has all lines in order, with an exact sum', () => {
  const [pattern] = read('tax-exclusive-discount').lines ?? []
  assert.ok(pattern)
  const lines = Array.from({ length: 250 }, (_, index) => ({
    ...pattern,
    id: `il_${index}`,
    amount: index - 50,
    subtotal: index - 50,
    discount_amounts: [{ amount: index % 3, discount: 'di_1' }],
  })).map(mapLine)
  assert.deepEqual(
    lines.map(({ id }) => id),
    Array.from({ length: 250 }, (_, index) => `il_${index}`),
  )
  // Σ (index − 50) − Σ (index mod 3)
  assert.equal(
    lines.reduce((sum, { amount_cents }) => sum + amount_cents, 0),
    18_625 - 249,
  )
})

test('the percentage of a tax rate is its effective percentage, even at zero', () => {
  const rate = read('tax-rate-effective').invoice.default_tax_rates[0]
  assert.ok(rate)
  assert.equal(percentageOf(rate), 6.5)
  assert.equal(percentageOf({ ...rate, effective_percentage: 0 }), 0)
  assert.equal(percentageOf({ ...rate, effective_percentage: null }), 23)
})

describe('amounts in the mapping of Stripe’s lines', () => {
  const cents = fc.integer({ min: -99_999_999, max: 99_999_999 })
  const amounts = fc.option(
    fc.array(fc.record({ amount: cents, discount: fc.constant('di_1') }), { maxLength: 4 }),
  )
  const decimal = fc
    .tuple(fc.boolean(), fc.nat(99_999_999), fc.array(fc.nat(9), { maxLength: 12 }))
    .map(
      ([minus, whole, places]) => `${minus ? '-' : ''}${whole}${places.length ? `.${places.join('')}` : ''}`,
    )
  const positive = decimal.map(text => text.replace('-', ''))
  const line = fc.record({
    id: fc.constant('il_1'),
    currency: fc.constant('eur'),
    description: fc.option(fc.constant('Plano')),
    amount: cents,
    subtotal: cents,
    discount_amounts: amounts,
    quantity: fc.option(fc.nat(1_000)),
    quantity_decimal: fc.option(positive),
    pricing: fc.option(fc.record({ unit_amount_decimal: fc.option(decimal) })),
  })
  const total = (list: readonly { amount: number }[] | null) =>
    (list ?? []).reduce((sum, { amount }) => sum + amount, 0)
  const asLine = (value: unknown) => value as Stripe.InvoiceLineItem

  test('a line fits the contract, and its amount is its subtotal minus its discount', () => {
    fc.assert(
      fc.property(line, source => {
        const mapped = mapLine(asLine(source))
        assert.equal(mapped.discount_cents, total(source.discount_amounts))
        assert.equal(mapped.amount_cents, source.subtotal - mapped.discount_cents)
        assertOurs(read('open').expected.invoice as Invoice, [mapped])
        assert.ok(!Object.values(mapped).some(value => Object.is(value, -0)), 'zero has no sign')
      }),
    )
  })

  test('a unit amount is rounded half up like Stripe’s decimals', () => {
    fc.assert(
      fc.property(line, decimal, (source, unit_amount_decimal) => {
        const mapped = mapLine(asLine({ ...source, pricing: { unit_amount_decimal } }))
        const price = Stripe.Decimal.from(unit_amount_decimal)
        assert.equal(mapped.unit_amount_cents, Number(price.toFixed(0, 'half-up')))
        assert.deepEqual(mapLine(asLine({ ...source, pricing: { unit_amount_decimal: price } })), mapped)
      }),
    )
  })

  test('a missing unit amount is the subtotal divided by the quantity, rounded half up', () => {
    fc.assert(
      fc.property(cents, positive, (subtotal, quantity_decimal) => {
        const mapped = mapLine(asLine({ subtotal, quantity_decimal, pricing: null }))
        const units = Stripe.Decimal.from(quantity_decimal)
        const expected = units.isZero()
          ? null
          : Number(Stripe.Decimal.from(subtotal).div(units, 0, 'half-up').toFixed(0, 'half-up'))
        assert.equal(mapped.unit_amount_cents, expected)
      }),
    )
  })

  test('a price that is not a plain decimal number is ignored', () => {
    for (const unit_amount_decimal of ['', 'free', '1e3', '1,5', 'NaN', '0x10', ' 5'])
      assert.equal(
        mapLine(asLine({ subtotal: 900, quantity: 3, pricing: { unit_amount_decimal } })).unit_amount_cents,
        300,
      )
  })

  test('a quotient is rounded to the nearest whole number, half away from zero', () => {
    const some = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n })
    fc.assert(
      fc.property(
        some,
        some.filter(value => value !== 0n),
        (dividend, divisor) => {
          const quotient = BigInt(divide(dividend, divisor))
          const abs = (value: bigint) => (value < 0n ? -value : value)
          const rest = 2n * abs(dividend - quotient * divisor)
          assert.ok(rest <= abs(divisor))
          if (rest === abs(divisor)) assert.ok(abs(quotient * divisor) > abs(dividend))
        },
      ),
      {
        examples: [
          [5n, 2n],
          [-5n, 2n],
          [5n, -2n],
          [-5n, -2n],
          [1n, 2n],
          [-1n, 2n],
          [0n, -3n],
          [4n, 3n],
        ],
      },
    )
    assert.ok(Object.is(divide(0n, -3n), 0) && Object.is(divide(-1n, 3n), 0), 'zero has no sign')
  })

  test('a whole percentage is returned exactly', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.integer({ min: 1, max: 999_999 }), (percent, hundredth) => {
        assert.equal(ratioPercent(percent * hundredth, 100 * hundredth), percent)
        assert.equal(ratioPercent(-percent * hundredth, -100 * hundredth), percent)
      }),
    )
  })

  test('an invoice with any amounts fits the contract, and keeps a single known tax rate', () => {
    const tax = fc.record({ amount: cents, rate: fc.constantFrom('txr_a', 'txr_b', null) })
    const base = read('open').invoice
    fc.assert(
      fc.property(
        fc.record({
          subtotal: cents,
          total: cents,
          total_excluding_tax: fc.option(cents),
          total_discount_amounts: amounts,
        }),
        fc.option(fc.array(tax, { maxLength: 4 })),
        (fields, taxes) => {
          const total_taxes = taxes?.map(({ amount, rate }) => ({
            amount,
            tax_rate_details: rate === null ? null : { tax_rate: rate },
          }))
          const source = { ...base, ...fields, total_taxes: total_taxes ?? null } as unknown as Stripe.Invoice
          const mapped = mapStored(source, new Map([['txr_a', 23]]), null, [])
          assert.ok('invoice' in mapped)
          const { invoice } = mapped
          assertOurs(invoice, [])
          assert.equal(invoice.discount_cents, total(fields.total_discount_amounts))
          const taxed = total(taxes)
          assert.equal(
            invoice.tax_cents,
            fields.total_excluding_tax === null ? taxed : fields.total - fields.total_excluding_tax,
          )
          const brought = new Set(taxes?.filter(({ amount }) => amount !== 0).map(({ rate }) => rate))
          const single = brought.size === 1 && !brought.has(null)
          const named = new Set(taxes?.flatMap(({ rate }) => rate ?? []))
          assert.deepEqual(rateIds(source), [...named])
          if (single && brought.has('txr_a')) assert.equal(invoice.tax_percent, 23)
          else if (invoice.tax_cents === 0) assert.equal(invoice.tax_percent, 0)
          else assert.equal(invoice.tax_percent === null, fields.total - invoice.tax_cents <= 0)
        },
      ),
    )
  })
})

test('the loaded Stripe library is the installed version', () => {
  assert.equal(StripeSdk.PACKAGE_VERSION, Stripe.PACKAGE_VERSION, 'run: node scripts/build.ts')
})
