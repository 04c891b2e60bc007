/** What holds between the amounts of an invoice and of its lines, for every way in which Stripe computes them. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Stripe } from 'stripe'
import { type SandboxOptions, startStripeSandbox } from '../../../sandbox/stripe/server.ts'
import type { Invoice, Line } from '../../../src/domain/invoice.ts'
import { completeRecord } from '../../../src/sources/platform-invoice.ts'
import type { InvoiceAnswer } from '../../../src/sources/source.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { addsUp, mapLine } from '../../../src/sources/stripe/map-invoice.ts'
import { campaign } from '../../support/checks/campaign.ts'
import { eventually } from '../../support/clients/cli.ts'
import { mapStored } from '../../support/worlds/map-stored.ts'
import {
  type ComputedInvoice,
  type Coupon,
  computeInvoice,
  type InvoicePlan,
} from '../../support/worlds/stripe-arithmetic.ts'

const runs = { numRuns: campaign(500, 50_000) }

const coupon: fc.Arbitrary<Coupon> = fc.oneof(
  fc.record({ percent_off: fc.constantFrom(5, 10, 12.5, 33.33, 50, 100) }),
  fc.record({ amount_off: fc.integer({ min: 1, max: 9_999 }) }),
)
const line = fc.record({
  amount: fc.oneof(fc.integer({ min: 1, max: 250_000 }), fc.integer({ min: -40_000, max: 0 })),
  coupons: fc.array(coupon, { maxLength: 3 }),
  reuses: fc.constant(false),
})
const rate = (id: string, inclusive: boolean) =>
  fc.record({
    id: fc.constant(id),
    percentage: fc.constantFrom(0, 5, 6, 8, 9.975, 10, 23),
    inclusive: fc.constant(inclusive),
  })
const plans: fc.Arbitrary<InvoicePlan> = fc.record({
  currency: fc.constantFrom('eur', 'jpy', 'kwd'),
  lines: fc.array(line, { minLength: 1, maxLength: 6 }),
  coupons: fc.array(coupon, { maxLength: 3 }),
  rates: fc.oneof(
    fc.constant([]),
    rate('txr_a', false).map(one => [one]),
    fc.tuple(rate('txr_a', false), rate('txr_b', false)),
    rate('txr_i', true).map(one => [one]),
    fc.tuple(rate('txr_a', false), rate('txr_i', true)),
  ),
  grant: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 50_000 })),
  shipping: fc.constant(0),
  rounding: fc.constantFrom('line', 'invoice'),
})
const plain: InvoicePlan = {
  currency: 'eur',
  lines: [],
  coupons: [],
  rates: [],
  grant: 0,
  shipping: 0,
  rounding: 'line',
}

function map({ invoice, lines }: Pick<ComputedInvoice, 'invoice' | 'lines'>): {
  invoice: Invoice
  lines: Line[]
} {
  const mappedLines = lines.map(mapLine)
  const mapped = mapStored(invoice, new Map(), null, mappedLines)
  assert.ok('invoice' in mapped)
  return { invoice: mapped.invoice, lines: mappedLines }
}

const sumOf = (lines: readonly Line[], name: 'subtotal_cents' | 'discount_cents' | 'amount_cents') =>
  lines.reduce((sum, line) => sum + line[name], 0)

function assertLinesAgree({ invoice, lines }: ReturnType<typeof map>): void {
  assert.equal(sumOf(lines, 'subtotal_cents'), invoice.subtotal_cents)
  assert.equal(sumOf(lines, 'discount_cents'), invoice.discount_cents)
  assert.equal(sumOf(lines, 'amount_cents'), invoice.subtotal_cents - invoice.discount_cents)
}

/** Subtotal − discount + tax − total, which is 0 when nothing is special. */
const gapOf = ({ subtotal_cents, discount_cents, tax_cents, total_cents }: Invoice) =>
  subtotal_cents - discount_cents + tax_cents - total_cents

describe('the mapped amounts of a Stripe invoice', () => {
  test('equal the sums of its lines, for discounts on any line or the invoice', () => {
    fc.assert(
      fc.property(plans, plan => {
        const computed = computeInvoice(plan)
        const mapped = map(computed)
        assertLinesAgree(mapped)
        const { tax_cents } = mapped.invoice
        // Tax that is included is no addition, and a grant lowers the total without being a discount.
        const included = tax_cents - computed.exclusive
        assert.equal(gapOf(mapped.invoice), included + computed.grants)
        if (plan.rates.every(({ inclusive }) => !inclusive)) assert.equal(included, 0)
      }),
      runs,
    )
  })

  test('add up as subtotal − discount + tax = total, without included tax and grants', () => {
    const ordinary = plans.map(plan => ({
      ...plan,
      grant: 0,
      rates: plan.rates.filter(({ inclusive }) => !inclusive),
    }))
    fc.assert(
      fc.property(ordinary, plan => assert.equal(gapOf(map(computeInvoice(plan)).invoice), 0)),
      runs,
    )
  })

  test('add up as subtotal − discount = total when all tax is included', () => {
    const included = fc.tuple(plans, rate('txr_i', true)).map(([plan, only]) => ({
      ...plan,
      grant: 0,
      rates: [only],
    }))
    fc.assert(
      fc.property(included, plan => {
        const { invoice } = map(computeInvoice(plan))
        assert.equal(invoice.subtotal_cents - invoice.discount_cents, invoice.total_cents)
      }),
      runs,
    )
  })

  test('have shipping only in the total, not in a line', () => {
    fc.assert(
      fc.property(plans, fc.integer({ min: 1, max: 5_000 }), (plan, shipping) => {
        const without = map(computeInvoice({ ...plan, shipping: 0 }))
        const mapped = map(computeInvoice({ ...plan, shipping }))
        assertLinesAgree(mapped)
        assert.deepEqual(mapped, {
          ...without,
          invoice: {
            ...without.invoice,
            total_cents: without.invoice.total_cents + shipping,
            // Of several rates the ratio is told, and shipping is part of the base.
            tax_percent: mapped.invoice.tax_percent,
          },
        })
      }),
      runs,
    )
  })

  test('are the same without lines, or with lines of another time', () => {
    fc.assert(
      fc.property(plans, plan => {
        const { invoice, lines } = computeInvoice(plan)
        const whole = map({ invoice, lines }).invoice
        for (const other of [
          lines.slice(1),
          [...lines, { ...lines[0], subtotal: 1 } as Stripe.InvoiceLineItem],
        ])
          if (!addsUp(invoice, other.map(mapLine)))
            assert.deepEqual(map({ invoice, lines: other }).invoice, whole)
      }),
      runs,
    )
  })

  test('sum up a discount that is redeemed on the invoice and on an item', () => {
    const reusing = plans.map(plan => ({
      ...plan,
      lines: plan.lines.map((line, index) => ({ ...line, reuses: index % 2 === 0 })),
    }))
    fc.assert(
      fc.property(reusing, plan => {
        const computed = computeInvoice(plan)
        const mapped = map(computed)
        assertLinesAgree(mapped)
        assert.equal(gapOf(mapped.invoice), mapped.invoice.tax_cents - computed.exclusive + computed.grants)
      }),
      runs,
    )
  })

  test('are the same for lines without a subtotal, as before December 2025', () => {
    fc.assert(
      fc.property(plans, plan => {
        const { invoice, lines } = computeInvoice(plan)
        const older = lines.map(({ subtotal: _, ...line }) => line as Stripe.InvoiceLineItem)
        assert.deepEqual(map({ invoice, lines: older }), map({ invoice, lines }))
      }),
      runs,
    )
  })

  test('are the same whether a line’s subtotal contains the included tax or not', () => {
    const included = fc.tuple(plans, rate('txr_i', true)).map(([plan, only]) => ({ ...plan, rates: [only] }))
    fc.assert(
      fc.property(included, plan => {
        const { invoice, lines } = computeInvoice(plan)
        const [percentage = 0] = plan.rates.map(only => only.percentage)
        const without = lines.map(line => {
          const subtotal = Math.round((line.amount * 100) / (100 + percentage))
          return { ...line, subtotal } as Stripe.InvoiceLineItem
        })
        const mapped = map({ invoice, lines: without })
        assertLinesAgree(mapped)
        assert.deepEqual(mapped, map({ invoice, lines }))
      }),
      runs,
    )
  })

  test('keep the invoice’s own subtotal when the lines do not add up', () => {
    const item = { amount: 12_300, coupons: [{ percent_off: 10 }], reuses: false }
    const { invoice, lines } = computeInvoice({ ...plain, lines: [item] })
    const other = lines.map(line => ({ ...line, subtotal: 1, amount: 1 }) as Stripe.InvoiceLineItem)
    const mapped = map({ invoice, lines: other }).invoice
    assert.deepEqual(
      [mapped.subtotal_cents, mapped.discount_cents, mapped.total_cents],
      [12_300, 1_230, 11_070],
    )
  })

  test('recognize discounts by ID when they arrive expanded', () => {
    const item = { amount: 1_000, coupons: [{ percent_off: 10 }], reuses: false }
    const { invoice } = computeInvoice({ ...plain, lines: [item], coupons: [{ amount_off: 100 }] })
    const expanded = {
      ...invoice,
      discounts: [{ id: 'di_0', object: 'discount' }],
      total_discount_amounts: invoice.total_discount_amounts?.map(({ amount, discount }) => ({
        amount,
        discount: { id: discount, object: 'discount' },
      })),
    } as unknown as Stripe.Invoice
    assert.equal(map({ invoice: expanded, lines: [] }).invoice.subtotal_cents, 1_000)
  })
})

describe('the amounts of a synced account', () => {
  const pace = { perSecond: 10_000, attempts: 6, patienceMs: 20_000 }

  async function read(t: TestContext, options: SandboxOptions) {
    const sandbox = await startStripeSandbox(options)
    t.after(() => sandbox.close())
    return {
      sandbox,
      source: createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys, pace),
    }
  }

  const recordOf = ({ found }: InvoiceAnswer) => {
    if (found === null) assert.fail()
    if ('refusal' in found) return null
    const { invoice, lines } = completeRecord(found, null)
    return { invoice, lines: lines ?? assert.fail() }
  }

  for (const subtotals of ['with_tax', 'without_tax'] as const)
    test(`add up when lines come on separate pages, with line subtotals ${subtotals}`, async t => {
      const { sandbox, source } = await read(t, { seed: 4, invoices: 400, subtotals })
      const { account } = sandbox
      const seen = new Set<string>()
      let after: string | null = null
      do {
        const { answers, next } = await source.listInvoices(after)
        for (const record of answers.map(recordOf)) {
          if (record === null) continue
          assertLinesAgree({ ...record, lines: [...record.lines] })
          const { total_taxes, subtotal, lines, discounts } =
            account.invoices.get(record.invoice.id) ?? assert.fail()
          const included = total_taxes
            .filter(tax => tax.tax_behavior === 'inclusive')
            .reduce((sum, { amount }) => sum + amount, 0)
          assert.equal(gapOf(record.invoice), included, record.invoice.id)
          if (record.invoice.subtotal_cents === subtotal) continue
          seen.add(included === 0 ? 'exclusive' : 'inclusive')
          seen.add(lines.data.length > 10 ? 'on pages' : 'embedded')
          seen.add(discounts.length > 0 ? 'mixed' : 'items alone')
        }
        after = next
      } while (after !== null)
      assert.deepEqual([...seen].sort(), [
        'embedded',
        'exclusive',
        'inclusive',
        'items alone',
        'mixed',
        'on pages',
      ])
    })

  test('include a line that is added while the lines are read', async t => {
    const { sandbox, source } = await read(t, { seed: 4, invoices: 0 })
    const { account, faults, requests } = sandbox
    const id = account.change('create')
    while (Number(account.invoices.get(id)?.lines.data.length) <= 10) account.change('update', id)
    faults.set('list_lines', 'error_500')
    const reading = source.fetchInvoice(id, null)
    // The invoice was read; its lines are asked for again until they come.
    await eventually('its lines are asked for', () => requests.get('list_lines') !== undefined)
    account.change('update', id)
    faults.clear()
    const record = recordOf(await reading) ?? assert.fail()
    assertLinesAgree({ ...record, lines: [...record.lines] })
    assert.equal(record.lines.length, account.invoices.get(id)?.lines.data.length)
    assert.equal(record.invoice.total_cents, account.invoices.get(id)?.total)
  })
})
