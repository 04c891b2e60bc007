/** An invoice as the payment platform reports it, and its merge with the stored invoice. Pure. */
import type { Claim } from '../domain/document.ts'
import type { Invoice, InvoiceRecord, Line } from '../domain/invoice.ts'
import type { PaymentFacts, TaxByRate } from '../domain/payment.ts'

/** Invoice fields about the certified document. The payment platform does not know them. */
type DocumentField = 'ix_sync_state' | 'ix_id' | 'ix_status' | 'ix_created_at'

export type BilledInvoice = Omit<Invoice, DocumentField>

export interface PlatformInvoice {
  invoice: BilledInvoice
  lines: readonly Line[] | null
  payment: PaymentFacts
  /** The document that the platform's own record of the invoice names. Absent: the platform records no documents. */
  claim?: Claim
  unread: Unread
}

/** Facts that the platform did not report, because the customer was deleted or the key may not read them. */
export interface Unread {
  customer: boolean
  /** True when the tax rate could not be read. `tax_percent` is then computed from the amounts. */
  rate: boolean
  payments: boolean
}

export const nothingUnread: Unread = { customer: false, rate: false, payments: false }

/** The invoice as it was stored before the platform's answer. */
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

/** Builds the record to store. Facts that the platform did not report keep their stored values, and so do the document's fields. */
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

/** An issued invoice keeps its display name, even when its customer is renamed later. */
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

/** Keeps the stored tax rates when a rate can no longer be read and the amounts are unchanged. */
function keepRates(taxes: readonly TaxByRate[] | null, before: readonly TaxByRate[] | null) {
  if (taxes === null || before === null || taxes.every(({ rate_percent }) => rate_percent !== null))
    return taxes
  const amountsOf = (some: readonly TaxByRate[]) =>
    some.map(({ base_cents, tax_cents, reason }) => JSON.stringify([base_cents, tax_cents, reason])).sort()
  return amountsOf(taxes).join() === amountsOf(before).join() ? before : taxes
}
