/** The domain: an invoice as the payment platform tells it, and what is stored of it where the platform tells nothing. Pure. */
import type { Claim } from '../domain/document.ts'
import type { Invoice, InvoiceRecord, Line } from '../domain/invoice.ts'
import type { PaymentFacts, TaxByRate } from '../domain/payment.ts'

/** Fields that say which document an invoice has. The payment platform knows nothing of them. */
type DocumentField = 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'

export type BilledInvoice = Omit<Invoice, DocumentField>

export interface PlatformInvoice {
  invoice: BilledInvoice
  lines: readonly Line[] | null
  payment: PaymentFacts
  /** What is recorded at the platform of its document. Absent: the platform records nothing. */
  claim?: Claim
  unread: Unread
}

/** What the platform did not tell: the customer was deleted, or the key may not read it. */
export interface Unread {
  customer: boolean
  /** The rate of the invoice's tax: `tax_percent` is computed from the amounts. */
  rate: boolean
  payments: boolean
}

export const nothingUnread: Unread = { customer: false, rate: false, payments: false }

/** The stored invoice before an answer. */
export interface Previous {
  invoice: Invoice
  payment: PaymentFacts | null
}

const noDocument = {
  ix_sync_state: 'not_synced',
  ix_id: null,
  ix_status: null,
  ix_created_at: null,
} as const satisfies Pick<Invoice, DocumentField>

/** The record to store. Where the platform answer nothing, what is stored stays; so does the document. */
export function completeRecord(answer: PlatformInvoice, previous: Previous | null): InvoiceRecord {
  const { invoice, lines, payment, claim } = answer
  if (previous === null)
    return { invoice: { ...invoice, ...noDocument }, lines, payment, ...(claim && { claim }) }
  const { ix_sync_state, ix_id, ix_status, ix_created_at } = previous.invoice
  return {
    invoice: {
      ...invoice,
      ...namesOf(answer, previous.invoice),
      tax_percent: taxPercentOf(answer, previous.invoice),
      ...{ ix_sync_state, ix_id, ix_status, ix_created_at },
    },
    lines,
    payment: keepPayment(answer, previous.payment),
    ...(claim && { claim }),
  }
}

/** An invoice keeps the name that it was issued with, whatever its customer is called later. */
function namesOf({ invoice, unread }: PlatformInvoice, previous: Invoice) {
  const isNameKept = unread.customer || previous.status !== 'draft'
  return {
    display_name: isNameKept ? previous.display_name : invoice.display_name,
    company_name: unread.customer ? previous.company_name : invoice.company_name,
  }
}

function taxPercentOf({ invoice, unread }: PlatformInvoice, previous: Invoice): number | null {
  const isSameTax = previous.tax_cents === invoice.tax_cents && previous.total_cents === invoice.total_cents
  return unread.rate && isSameTax ? previous.tax_percent : invoice.tax_percent
}

function keepPayment({ payment, unread }: PlatformInvoice, before: PaymentFacts | null): PaymentFacts {
  if (before === null) return payment
  return {
    ...payment,
    taxes: keepRates(payment.taxes, before.taxes),
    payments: unread.payments ? before.payments : payment.payments,
  }
}

/** Rates that were known, and can no longer be read, stay while the amounts are the same. */
function keepRates(taxes: readonly TaxByRate[] | null, before: readonly TaxByRate[] | null) {
  if (taxes === null || before === null || taxes.every(({ rate_percent }) => rate_percent !== null))
    return taxes
  const amountsOf = (some: readonly TaxByRate[]) =>
    some.map(({ base_cents, tax_cents, reason }) => JSON.stringify([base_cents, tax_cents, reason])).sort()
  return amountsOf(taxes).join() === amountsOf(before).join() ? before : taxes
}
