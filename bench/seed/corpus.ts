/** The invoices that are measured: the same at every run, and made one after the other, so that memory stays constant. */

import { createRandom, integer, letters, pick, type Random } from '../../sandbox/random.ts'
import type {
  Invoice,
  InvoiceDocument,
  InvoiceRecord,
  InvoiceStatus,
  Line,
} from '../../src/domain/invoice.ts'

export interface Shape {
  /** Customers with a few invoices each. */
  customers: number
  /** Invoices of each of them. */
  each: number
  /** Sizes of the large customers, one number a customer. */
  large: readonly number[]
}

/** As many customers' invoices lie between two of the same customer, as they would had they come in over the years. */
const interleaved = 1_000

export const firstDay = Date.UTC(2022, 10, 1)
const lastDay = Date.UTC(2026, 10, 1)

/** Ascends with the index, so that the store's indexes are filled from one end to the other. */
export function customerId(index: number): string {
  return `cus_${index.toString(36).padStart(6, '0')}${letters(createRandom(index + 1), 8)}`
}

export function largeCustomerId(shape: Shape, index: number): string {
  return customerId(shape.customers + index)
}

export function countInvoices({ customers, each, large }: Shape): number {
  return customers * each + large.reduce((sum, size) => sum + size, 0)
}

/** Every invoice: first those of the small customers, in blocks of customers, then each large customer's. */
export function* makeRecords(shape: Shape): Generator<InvoiceRecord> {
  const random = createRandom(20_261_115)
  let serial = 0
  for (let first = 0; first < shape.customers; first += interleaved) {
    const count = Math.min(interleaved, shape.customers - first)
    const ids = Array.from({ length: count }, (_, index) => customerId(first + index))
    for (let turn = 0; turn < shape.each; turn++) for (const id of ids) yield makeRecord(random, id, ++serial)
  }
  for (const [index, size] of shape.large.entries()) {
    const id = largeCustomerId(shape, index)
    for (let count = 0; count < size; count++) yield makeRecord(random, id, ++serial)
  }
}

/** A list in which each value stands as often as it weighs. */
const weigh = <T>(weights: readonly (readonly [T, number])[]): T[] =>
  weights.flatMap(([value, weight]) => Array<T>(weight).fill(value))

const statuses = weigh<InvoiceStatus>([
  ['paid', 12],
  ['open', 3],
  ['draft', 2],
  ['void', 2],
  ['uncollectible', 1],
])
const documentStatuses = weigh<string | null>([
  ['settled', 9],
  [null, 4],
  ['final', 3],
  ['canceled', 2],
  ['draft', 2],
])

const given =
  'Ana Beatriz Carla Diogo Eduardo Filipa Gonçalo Helena Inês João Luís Marta Nuno Rita Sofia Tiago'.split(
    ' ',
  )
const family =
  'Almeida Araújo Barros Carvalho Costa Dias Esteves Faria Gomes Leão Lopes Martins Nunes Pinto Ramos Sousa'.split(
    ' ',
  )
const trades = 'Oficina Padaria Livraria Estúdio Farmácia Transportes Quinta Atelier'.split(' ')
const wares = [
  'Plano Profissional',
  'Plano Base',
  'Utilizadores adicionais',
  'Armazenamento',
  'Apoio prioritário',
]
const domains = 'alfa beta gama delta omega sigma'.split(' ')

type Party = Pick<
  Invoice,
  'display_name' | 'customer_name' | 'company_name' | 'customer_email' | 'customer_tax_id'
>

/** A customer moves, marries, is sold: so many times its invoices are made out to another name, e-mail or tax id. */
const partiesEach = 3

/** Whom a customer's invoices are made out to: the same few, whatever the order in which they are made. */
function makeParty(customer_id: string, turn: number): Party {
  const seed = [...customer_id].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, turn)
  const random = createRandom(seed)
  const customer_name = `${pick(random, given)} ${pick(random, family)}`
  const company_name = random() < 0.7 ? `${pick(random, trades)} ${pick(random, family)}, Lda.` : null
  return {
    display_name: company_name ?? customer_name,
    customer_name,
    company_name,
    customer_email: `financeiro${integer(random, 1, 9_999)}@${pick(random, domains)}.example`,
    customer_tax_id: `PT5${String(integer(random, 0, 99_999_999)).padStart(8, '0')}`,
  }
}

/** Nothing of a record tells anything about another field of it, but the amounts, which have to add up. */
function makeRecord(random: Random, customer_id: string, serial: number): InvoiceRecord {
  const id = `in_1${letters(random, 20)}`
  const issued = integer(random, firstDay, lastDay - 1)
  const status = pick(random, statuses)
  const ix_status = pick(random, documentStatuses)
  const party = makeParty(customer_id, integer(random, 1, partiesEach))
  const lines = Array.from({ length: integer(random, 1, 3) }, (_, index) => makeLine(random, id, index))
  const subtotal_cents = lines.reduce((sum, line) => sum + line.amount_cents, 0)
  const tax_cents = Math.round(subtotal_cents * 0.23)
  const invoice: Invoice = {
    id,
    number: status === 'draft' ? null : `${2022 + (serial % 5)}-${String(serial).padStart(8, '0')}`,
    ...party,
    customer_id,
    issued_at: new Date(issued).toISOString(),
    ix_created_at: ix_status === null ? null : new Date(issued + 72_000).toISOString(),
    subtotal_cents,
    discount_cents: 0,
    tax_cents,
    tax_percent: 23,
    total_cents: subtotal_cents + tax_cents,
    currency: 'eur',
    status,
    ix_sync_state: ix_status === null ? 'not_synced' : 'synced',
    ix_id: ix_status === null ? null : 48_000 + serial,
    ix_status,
  }
  return { invoice, lines, document: makeDocument(invoice, serial) }
}

/** The associated document, of the invoice's amounts; null for none. */
function makeDocument(invoice: Invoice, serial: number): InvoiceDocument | null {
  const { ix_id, ix_status, issued_at, subtotal_cents, tax_cents, total_cents, status } = invoice
  if (ix_id === null || ix_status === null) return null
  const isIssued = ix_status !== 'draft'
  const date = issued_at.slice(0, 10)
  return {
    ...{ id: ix_id, type: status === 'paid' ? 'InvoiceReceipt' : 'Invoice', status: ix_status },
    ...{ number: isIssued ? `FT G/${serial}` : null, series: isIssued ? 'G' : null },
    ...{ atcud: isIssued ? `JFBCD7XK-${serial}` : null, date, due_date: date },
    ...{ before_tax_cents: subtotal_cents, tax_cents, gross_cents: total_cents, total_cents },
    ...{ retention_percent: null, retention_cents: null, currency: 'eur', in_invoice_currency: null },
    taxes: [{ rate_percent: 23, base_cents: subtotal_cents, tax_cents }],
    ...{ exemption_code: null, buyer_name: null, buyer_tax_id: null, multibanco: null },
    ...{ qr_path: null, related: [] },
  }
}

function makeLine(random: Random, invoiceId: string, index: number): Line {
  const [quantity, unit_amount_cents] = [integer(random, 1, 5), integer(random, 500, 20_000)]
  const amount_cents = quantity * unit_amount_cents
  return {
    id: `il_${invoiceId.slice(3)}${index}`,
    description: pick(random, wares),
    quantity,
    subtotal_cents: amount_cents,
    discount_cents: 0,
    discount_percent: 0,
    unit_amount_cents,
    amount_cents,
    currency: 'eur',
  }
}
