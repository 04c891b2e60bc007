/**
 * The steps of an invoice, for example from a draft to an open invoice. Each step returns a new object, so that an event keeps the earlier
 * state.
 */
import { inOnePiece, integer, letters, pick, type Random } from '../random.ts'
import type { Payer, Taxations } from './customers.ts'
import { createLine, type Plan, totalsOf } from './lines.ts'
import type { StripeInvoice, StripeLine, StripeTaxRate } from './objects.ts'
import { amountsOf, cancelPayments, dueDate, openAccount, type Terms } from './settlement.ts'

type Rates = ReadonlyMap<string, StripeTaxRate>

const fixed = {
  account_country: 'PT',
  account_name: 'Sandbox, Lda.',
  account_tax_ids: null,
  amount_overpaid: 0,
  amount_shipping: 0,
  application: null,
  automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
  billing_reason: 'manual',
  custom_fields: null,
  customer_phone: null,
  customer_shipping: null,
  customer_tax_exempt: 'none',
  default_payment_method: null,
  default_source: null,
  footer: null,
  from_invoice: null,
  issuer: { type: 'self' },
  last_finalization_error: null,
  latest_revision: null,
  livemode: false,
  next_payment_attempt: null,
  on_behalf_of: null,
  parent: null,
  payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
  post_payment_credit_notes_amount: 0,
  pre_payment_credit_notes_amount: 0,
  receipt_number: null,
  rendering: null,
  shipping_cost: null,
  shipping_details: null,
  statement_descriptor: null,
  test_clock: null,
}
const untouched = { finalized_at: null, marked_uncollectible_at: null, paid_at: null, voided_at: null }

export interface DraftOptions {
  payer: Payer
  /** Position of the invoice in the account. Some positions give an invoice with very many lines. */
  serial: number
  created: number
  taxations: Taxations
  rates: Rates
  terms: Terms
  /** Number of lines. Random by default. */
  lines?: number
}

/** Creates a draft, and the plan for adding lines later. */
export function createDraft(random: Random, coupons: Random, options: DraftOptions): [StripeInvoice, Plan] {
  const { payer, serial, created, taxations, rates, terms } = options
  const id = inOnePiece('in_1', letters(random, 17), serial.toString(36).padStart(6, '0'))
  const { currency, price } = payer
  const taxation = pick(random, taxations[payer.country] ?? [{ rates: [], mixed: false }])
  const percents = random() < 0.25 ? (random() < 0.3 ? [10, 5] : [pick(random, [10, 12.5, 25])]) : []
  const discounts = percents.map(percent => ({ id: inOnePiece('di_1', letters(random, 23)), percent }))
  const period = { start: created - 30 * 86_400, end: created }
  const hasItemDiscounts = coupons() < 0.15
  const plan: Plan = { invoice: id, currency, price, period, taxation, discounts, hasItemDiscounts }
  const lines = Array.from({ length: options.lines ?? countLines(random, serial) }, () =>
    createLine(random, coupons, plan),
  )
  const isEmbedded = !taxation.mixed && random() < 0.6
  const draft: StripeInvoice = {
    ...fixed,
    id,
    object: 'invoice',
    ...amountsOf({ total: 0 }, 0),
    attempt_count: 0,
    attempted: false,
    auto_advance: false,
    automatically_finalizes_at: null,
    collection_method: terms.isAutomatic ? 'charge_automatically' : 'send_invoice',
    created,
    currency,
    customer: payer.customer?.id ?? null,
    customer_account: payer.account,
    customer_address: null,
    customer_email: payer.customer?.email ?? payer.email,
    customer_name: payer.customer?.name ?? payer.name,
    customer_tax_ids: payer.taxIds,
    default_tax_rates: isEmbedded ? taxation.rates : [],
    description: random() < 0.2 ? 'Obrigado pela preferência.' : null,
    discounts: discounts.map(({ id }) => id),
    due_date: dueDate(created, terms),
    effective_at: null,
    ending_balance: null,
    hosted_invoice_url: null,
    invoice_pdf: null,
    lines: { object: 'list', data: [], has_more: false, url: inOnePiece('/v1/invoices/', id, '/lines') },
    metadata: random() < 0.2 ? { pedido: `PT-${integer(random, 1_000, 9_999)}`, origem: 'loja' } : {},
    number: null,
    payments: {
      object: 'list',
      data: [],
      has_more: false,
      url: inOnePiece('/v1/invoice_payments?invoice=', id),
    },
    period_start: period.start,
    period_end: period.end,
    starting_balance: payer.balance,
    status: 'draft',
    status_transitions: untouched,
    ...totalsOf([], rates),
    webhooks_delivered_at: null,
  }
  return [withLines(draft, lines, rates), plan]
}

function countLines(random: Random, serial: number): number {
  if (serial % 180 === 23) return integer(random, 101, 260)
  if (serial % 45 === 11) return integer(random, 10, 30)
  return integer(random, 1, 5)
}

export function addLine(
  random: Random,
  coupons: Random,
  draft: StripeInvoice,
  plan: Plan,
  rates: Rates,
): StripeInvoice {
  return withLines(draft, [...draft.lines.data, createLine(random, coupons, plan)], rates)
}

function withLines(draft: StripeInvoice, data: StripeLine[], rates: Rates): StripeInvoice {
  const totals = totalsOf(data, rates)
  const lines = { ...draft.lines, data, total_count: data.length }
  return { ...draft, lines, ...totals, ...amountsOf({ ...draft, ...totals }, 0) }
}

export function finalize(
  random: Random,
  draft: StripeInvoice,
  { payer, terms, at }: { payer: Payer; terms: Terms; at: number },
): StripeInvoice {
  const secret = letters(random, 32)
  return {
    ...openAccount(draft, payer, terms, at),
    status: 'open',
    number: inOnePiece(payer.prefix, '-', String(payer.sequence++).padStart(4, '0')),
    // For some invoices, `effective_at` is a day before the finalization.
    effective_at: random() < 0.1 ? at - 86_400 : at,
    // The server adds its address before this path.
    hosted_invoice_url: `/i/${draft.id}/${secret}`,
    invoice_pdf: `/pdf/${draft.id}/${secret}.pdf?s=ap`,
    status_transitions: { ...draft.status_transitions, finalized_at: at },
    webhooks_delivered_at: at,
  }
}

export function voidInvoice(invoice: StripeInvoice, at: number): StripeInvoice {
  const status_transitions = { ...invoice.status_transitions, voided_at: at }
  return { ...cancelPayments(invoice, at), status: 'void', amount_remaining: 0, status_transitions }
}

export function markUncollectible(invoice: StripeInvoice, at: number): StripeInvoice {
  const status_transitions = { ...invoice.status_transitions, marked_uncollectible_at: at }
  return { ...invoice, status: 'uncollectible', status_transitions }
}
