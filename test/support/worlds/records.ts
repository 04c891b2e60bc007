/** Valid invoices to start from; a test says only what matters to it. */
import type { Invoice, InvoiceRecord, Line } from '../../../src/domain/invoice.ts'

let serial = 0

export function makeInvoice(fields: Partial<Invoice> = {}): Invoice {
  serial++
  return {
    id: `in_test${serial}`,
    number: `2026-${String(serial).padStart(5, '0')}`,
    display_name: 'Ana Lima',
    customer_name: 'Ana Lima',
    customer_id: 'cus_ana',
    customer_email: 'ana@lima.example',
    company_name: null,
    customer_tax_id: 'PT123456789',
    issued_at: '2026-03-02T09:30:00.000Z',
    ix_created_at: null,
    subtotal_cents: 10_000,
    discount_cents: 0,
    tax_cents: 2_300,
    tax_percent: 23,
    total_cents: 12_300,
    currency: 'eur',
    status: 'paid',
    ix_sync_state: 'not_synced',
    ix_id: null,
    ix_status: null,
    ...fields,
  }
}

/** With its certified document. */
export const withDocument = {
  ix_sync_state: 'synced',
  ix_id: 4711,
  ix_status: 'settled',
  ix_created_at: '2026-03-02T09:31:00.000Z',
} as const satisfies Partial<Invoice>

export function makeRecord(
  fields: Partial<Invoice> = {},
  lines: readonly Line[] | null = null,
): InvoiceRecord {
  return { invoice: makeInvoice(fields), lines }
}

export function makeLine(fields: Partial<Line> = {}): Line {
  serial++
  return {
    id: `il_test${serial}`,
    description: 'Plano Essencial',
    quantity: 2,
    subtotal_cents: 10_000,
    discount_cents: 0,
    discount_percent: 0,
    unit_amount_cents: 5_000,
    amount_cents: 10_000,
    currency: 'eur',
    ...fields,
  }
}

/** Lines of 14 MB: an answer far larger than what two sockets hold between them. */
export function makeHugeLines(): Line[] {
  const description = 'x'.repeat(1_000_000)
  return Array.from({ length: 14 }, () => makeLine({ description }))
}
