/** Sample invoices for the demo: the same at every run, and one of everything that a company meets. */
import {
  type Invoice,
  type InvoiceRecord,
  type InvoiceStatus,
  invoiceStatuses,
  type Line,
  type SyncState,
  syncStates,
} from '../invoice.ts'

interface SampleCustomer {
  customer_id: string
  customer_name: string | null
  company_name: string | null
  customer_email: string | null
  customer_tax_id: string | null
  currency: string
  /** What a unit of the cheapest product costs, in the smallest unit. */
  price: number
  tax_percent: number
  invoices: number
}

/** Euros, yen without decimals, and dinars with three. */
export const sampleCustomers: readonly SampleCustomer[] = [
  {
    customer_id: 'cus_SaoBento01',
    customer_name: 'João Conceição',
    company_name: 'Padaria São Bento, Lda.',
    customer_email: 'joao.conceicao@saobento.example',
    customer_tax_id: 'PT509442013',
    currency: 'eur',
    price: 1_490,
    tax_percent: 23,
    invoices: 96,
  },
  {
    customer_id: 'cus_Evora02',
    customer_name: 'Inês Guimarães',
    company_name: 'Construções Évora & Irmãos, S.A.',
    customer_email: 'financeiro@evora.example',
    customer_tax_id: '503218820',
    currency: 'eur',
    price: 12_000,
    tax_percent: 6,
    invoices: 64,
  },
  {
    customer_id: 'cus_Tokyo03',
    customer_name: '佐藤 健',
    company_name: '東京カステラ株式会社',
    customer_email: 'sato@castella.example',
    customer_tax_id: 'T1234567890123',
    currency: 'jpy',
    price: 2_200,
    tax_percent: 10,
    invoices: 48,
  },
  {
    customer_id: 'cus_Kuwait04',
    customer_name: 'Fátima Al-Sabah',
    company_name: null,
    customer_email: null,
    customer_tax_id: null,
    currency: 'kwd',
    price: 4_750,
    tax_percent: 0,
    invoices: 32,
  },
]

const products = [
  'Plano Essencial',
  'Plano Profissional',
  'Utilizador adicional',
  'Apoio técnico',
  'Formação à distância',
]
const firstDay = Date.UTC(2024, 0, 8, 9, 0, 0)
const day = 86_400_000

export function* sampleInvoices(): Generator<InvoiceRecord> {
  const random = createRandom(2026)
  let serial = 0
  for (const customer of sampleCustomers)
    for (let index = 0; index < customer.invoices; index++)
      yield sampleInvoice(customer, index, ++serial, random)
}

function sampleInvoice(
  customer: SampleCustomer,
  index: number,
  serial: number,
  random: () => number,
): InvoiceRecord {
  const { customer_id, customer_name, company_name, customer_email, customer_tax_id, currency } = customer
  const lines = sampleLines(customer, serial, random)
  const sum = (field: 'subtotal_cents' | 'discount_cents') =>
    lines.reduce((total, line) => total + line[field], 0)
  const subtotal_cents = sum('subtotal_cents')
  const discount_cents = sum('discount_cents')
  const tax_cents = Math.round(((subtotal_cents - discount_cents) * customer.tax_percent) / 100)
  const status = pickStatus(index, random)
  // Twice in a row the same moment, so that the order by id shows too.
  const issued = firstDay + Math.floor(index / 2) * 18 * day + serial * 61_000 * (index % 3 === 0 ? 1 : 0)
  const invoice: Invoice = {
    id: `in_Sample${String(serial).padStart(4, '0')}`,
    number:
      status === 'draft' ? null : `${new Date(issued).getUTCFullYear()}-${String(serial).padStart(5, '0')}`,
    display_name: company_name ?? customer_name ?? customer_id,
    customer_name,
    customer_id,
    customer_email,
    company_name,
    customer_tax_id,
    issued_at: new Date(issued).toISOString(),
    ...sampleDocument(status, index, issued, serial),
    subtotal_cents,
    discount_cents,
    tax_cents,
    tax_percent: customer.tax_percent,
    total_cents: subtotal_cents - discount_cents + tax_cents,
    currency,
    status,
  }
  // Now and then the lines are not known, as happens with a real source.
  return { invoice, lines: index % 16 === 15 ? null : lines }
}

function sampleLines(customer: SampleCustomer, serial: number, random: () => number): Line[] {
  const count = 1 + Math.floor(random() * 4)
  return Array.from({ length: count }, (_, position) => {
    const product = Math.floor(random() * products.length)
    const unit_amount_cents = customer.price * (product + 1)
    const quantity = 1 + Math.floor(random() * 5)
    const subtotal_cents = unit_amount_cents * quantity
    const discount_percent = random() < 0.25 ? 10 : 0
    const discount_cents = Math.round((subtotal_cents * discount_percent) / 100)
    return {
      id: `il_Sample${String(serial).padStart(4, '0')}x${position + 1}`,
      description: products[product] ?? null,
      quantity,
      subtotal_cents,
      discount_cents,
      discount_percent,
      unit_amount_cents,
      amount_cents: subtotal_cents - discount_cents,
      currency: customer.currency,
    }
  })
}

/** Mostly paid, as invoices are; but every status, for every customer. */
function pickStatus(index: number, random: () => number): InvoiceStatus {
  return (index < invoiceStatuses.length || random() < 0.2 ? invoiceStatuses[index % 5] : undefined) ?? 'paid'
}

type SampleDocument = Pick<Invoice, 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'>

function sampleDocument(
  status: InvoiceStatus,
  index: number,
  issued: number,
  serial: number,
): SampleDocument {
  const ix_sync_state: SyncState =
    (index % 8 < syncStates.length ? syncStates[index % 8] : undefined) ?? 'synced'
  if (status === 'draft' || ix_sync_state !== 'synced')
    return {
      ix_sync_state: ix_sync_state === 'synced' ? 'not_synced' : ix_sync_state,
      ix_id: null,
      ix_status: null,
      ix_created_at: null,
    }
  const ix_status = {
    paid: 'settled',
    open: 'final',
    void: 'canceled',
    uncollectible: 'final',
    draft: 'draft',
  }[status]
  return {
    ix_sync_state,
    ix_id: 48_000 + serial,
    ix_status,
    ix_created_at: new Date(issued + 72_000).toISOString(),
  }
}

/** Mulberry32: small, fast, and the same everywhere. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
