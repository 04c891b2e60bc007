/** Customers and tax rates of the account. The first twelve customers show every kind that a connector meets. */
import { inOnePiece, integer, letters, pick, type Random } from '../random.ts'
import type { LivingCustomer, StripeCustomer, StripeInvoicePayment, StripeTaxRate } from './objects.ts'

/** A payer is a customer. With Stripe's accounts v2 a payer has only an account and no customer. */
export interface Payer {
  customer: LivingCustomer | null
  account: string | null
  name: string | null
  email: string | null
  currency: string
  country: string
  /** Tax IDs, which Stripe copies onto invoices. Null, an empty list, and several IDs all occur. */
  taxIds: { type: string; value: string }[] | null
  /** Price of the cheapest product in the smallest unit of the currency. */
  price: number
  /** Whether the customer is deleted from the start. The customer's invoices stay. */
  isDeleted: boolean
  /** A negative balance is a credit, and a positive balance is owed. The next invoice takes the balance over. */
  balance: number
  /** The last payment that was opened for the payer. */
  lastPayment: StripeInvoicePayment['payment'] | null
  prefix: string
  sequence: number
}

const firstNames = ['João', 'Inês', 'Conceição', 'Martim', 'Beatriz', 'Tomás', 'Leonor', 'Gonçalo']
const lastNames = [
  'Guimarães',
  'Simões',
  'Araújo',
  'Brandão',
  'Magalhães',
  'Falcão',
  'Leão',
  'Espírito Santo',
]
const trades = ['Padaria', 'Construções', 'Livraria', 'Oficina', 'Clínica', 'Hotelaria', 'Vinhos', 'Têxteis']

export function createPayer(random: Random, index: number, created: number): Payer {
  const kind = index % 12
  const personal = inOnePiece(pick(random, firstNames), ' ', pick(random, lastNames))
  const business = inOnePiece(pick(random, trades), ' ', pick(random, lastNames), ' & Filhos, Lda.')
  const digits = String(integer(random, 500_000_000, 519_999_999))
  const name = kind === 7 ? null : personal
  const email =
    kind === 9
      ? null
      : inOnePiece('financeiro', String(index + 1), '@exemplo', String(integer(random, 1, 99)), '.example')
  const prefix = letters(random, 8).toUpperCase()
  const base = { name, email, isDeleted: kind === 6, balance: 0, lastPayment: null, prefix, sequence: 1 }
  const id = inOnePiece('cus_', letters(random, 14))
  const payer = { ...base, ...regionOf(kind, digits) }
  if (kind === 5) return { ...payer, customer: null, account: `acct_${letters(random, 16)}` }
  const customer: LivingCustomer = {
    id,
    object: 'customer',
    address: null,
    balance: 0,
    ...(kind % 3 === 1 ? {} : { business_name: business }),
    created,
    currency: payer.currency,
    customer_account: null,
    default_source: null,
    delinquent: false,
    description: null,
    discount: null,
    email,
    ...(kind === 4 ? { individual_name: personal } : {}),
    invoice_prefix: prefix,
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: false,
    metadata: {},
    name,
    next_invoice_sequence: 1,
    phone: null,
    preferred_locales: ['pt'],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  }
  return { ...payer, customer, account: null }
}

/** Returns the customer as Stripe sends it. Null for a payer without a customer. */
export function customerOf({ customer, isDeleted, balance }: Payer): StripeCustomer | null {
  if (customer === null) return null
  return isDeleted ? { id: customer.id, object: 'customer', deleted: true } : { ...customer, balance }
}

/** Returns the customer with a new name, and the former values of the changed fields. */
export function rename(
  customer: LivingCustomer,
  name: string,
): [renamed: LivingCustomer, former: Record<string, string | null>] {
  const { name: before, business_name } = customer
  if (business_name === undefined) return [{ ...customer, name }, { name: before }]
  return [
    { ...customer, name, business_name: `${name}, Lda.` },
    { name: before, business_name },
  ]
}

type Region = Pick<Payer, 'currency' | 'country' | 'taxIds' | 'price'>

function regionOf(kind: number, digits: string): Region {
  if (kind === 2)
    return {
      currency: 'jpy',
      country: 'JP',
      price: 2_200,
      taxIds: [{ type: 'jp_trn', value: inOnePiece('T3', digits, '000') }],
    }
  if (kind === 3) return { currency: 'kwd', country: 'KW', price: 4_750, taxIds: null }
  if (kind === 8) return { currency: 'usd', country: 'CA', price: 1_999, taxIds: [] }
  const taxIds = [
    [
      { type: 'eu_vat', value: `PT${digits}` },
      { type: 'pt_nif', value: digits },
    ],
    [],
    [{ type: 'eu_vat', value: `PT${digits}` }],
    [
      { type: 'gb_vat', value: `GB${digits}` },
      { type: 'eu_vat', value: `ESB${digits.slice(1)}` },
    ],
  ]
  return { currency: 'eur', country: 'PT', price: 1_490, taxIds: taxIds[kind % 4] ?? [] }
}

/** Tax rates of an invoice. All rates apply to each line, or with `mixed` each line has one of them. */
export interface Taxation {
  rates: StripeTaxRate[]
  mixed: boolean
}

/** Taxations by country. All are equally likely. An invoice with an empty taxation has no tax. */
export type Taxations = Record<string, Taxation[]>

export function createTaxRates(random: Random, created: number): [StripeTaxRate[], Taxations] {
  const rates: StripeTaxRate[] = []
  const rate = (name: string, country: string, percentage: number, inclusive: boolean): StripeTaxRate => {
    const made: StripeTaxRate = {
      id: inOnePiece('txr_1', letters(random, 23)),
      object: 'tax_rate',
      active: true,
      country,
      created,
      description: null,
      display_name: name,
      effective_percentage: rates.length % 2 === 0 ? percentage : null,
      flat_amount: null,
      inclusive,
      jurisdiction: country,
      jurisdiction_level: 'country',
      livemode: false,
      metadata: {},
      percentage,
      rate_type: 'percentage',
      state: null,
      tax_type: 'vat',
    }
    rates.push(made)
    return made
  }
  const together = (...rates: StripeTaxRate[]): Taxation => ({ rates, mixed: false })
  const normal = rate('IVA', 'PT', 23, false)
  const reduced = rate('IVA', 'PT', 6, false)
  const mixed = { rates: [normal, reduced], mixed: true }
  const inclusive = together(rate('IVA', 'PT', 23, true))
  const japan = [together(rate('JCT', 'JP', 10, true)), together(rate('JCT', 'JP', 8, false))]
  const canada = [together(rate('GST', 'CA', 5, false), rate('QST', 'CA', 9.975, false)), together()]
  const zero = together(rate('VAT', 'KW', 0, false))
  const portugal = [together(normal), together(normal), together(reduced), mixed, inclusive, together()]
  return [rates, { PT: portugal, JP: japan, CA: canada, KW: [zero, together()] }]
}
