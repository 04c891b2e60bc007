/** Example bodies for the OpenAPI document. Most of them show the same invoice. */
import type { AccountStatement } from '../../domain/account.ts'
import type { CustomerBalance } from '../../domain/balance.ts'
import type { ChangeList } from '../../domain/change.ts'
import {
  type CustomerSummary,
  downloadPath,
  type Invoice,
  type InvoiceDetail,
  type InvoiceDocument,
  type InvoiceList,
  qrPath,
} from '../../domain/invoice.ts'

export const exampleInvoice: Invoice = {
  id: 'in_1QmZ4tFaturaExample01',
  number: '2026-00012',
  display_name: 'Padaria São Bento, Lda.',
  customer_name: 'João Conceição',
  customer_id: 'cus_SaoBento01',
  customer_email: 'joao@saobento.example',
  company_name: 'Padaria São Bento, Lda.',
  customer_tax_id: 'PT509442013',
  issued_at: '2026-03-02T09:30:00.000Z',
  ix_created_at: '2026-03-02T09:31:12.000Z',
  subtotal_cents: 10000,
  discount_cents: 1000,
  tax_cents: 2070,
  tax_percent: 23,
  total_cents: 11070,
  currency: 'eur',
  status: 'paid',
  ix_sync_state: 'synced',
  ix_id: 48213,
  ix_status: 'settled',
}

export const exampleDocument: InvoiceDocument = {
  id: 48213,
  type: 'InvoiceReceipt',
  status: 'settled',
  number: 'FR A/123',
  series: 'A',
  atcud: 'ABCD1234-123',
  date: '2026-03-02',
  due_date: '2026-03-02',
  before_tax_cents: 9000,
  tax_cents: 2070,
  gross_cents: 11070,
  retention_percent: null,
  retention_cents: null,
  total_cents: 11070,
  currency: 'eur',
  in_invoice_currency: null,
  taxes: [{ rate_percent: 23, base_cents: 9000, tax_cents: 2070 }],
  exemption_code: null,
  buyer_name: 'Aurora Software, Lda.',
  buyer_tax_id: '509442013',
  multibanco: { entity: '10611', reference: '123456789' },
  qr_path: qrPath(exampleInvoice.customer_id, exampleInvoice.id),
  related: [
    {
      id: 48377,
      type: 'CreditNote',
      number: 'NC A/4',
      date: '2026-03-05',
      gross_cents: 1107,
      total_cents: 1107,
      in_invoice_currency: null,
      status: 'final',
    },
  ],
}

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...detailFields } =
  exampleInvoice

export const examples: Record<string, object> = {
  InvoiceSummary: exampleInvoice,
  InvoiceList: {
    invoices: [exampleInvoice],
    page: 1,
    page_size: 10,
    total: 1,
    total_pages: 1,
    source: 'synchronized_records',
  } satisfies InvoiceList,
  InvoiceDetail: {
    ...detailFields,
    lines: [
      {
        id: 'il_1QmZ4tFaturaExample01',
        description: 'Plano Profissional, março de 2026',
        quantity: 2,
        subtotal_cents: 10000,
        discount_cents: 1000,
        discount_percent: 10,
        unit_amount_cents: 5000,
        amount_cents: 9000,
        currency: 'eur',
      },
    ],
    lines_source: 'payments',
    downloads: {
      ix: downloadPath(exampleInvoice.customer_id, exampleInvoice.id, 'ix'),
      payments: downloadPath(exampleInvoice.customer_id, exampleInvoice.id, 'payments'),
    },
  } satisfies InvoiceDetail,
  InvoiceDocument: exampleDocument,
  ChangeList: {
    changes: [
      {
        cursor: '5e0c9a714b2d-1772443872000',
        customer_id: exampleInvoice.customer_id,
        invoice_id: exampleInvoice.id,
        kind: 'document',
        version: 1772443872000,
        at: '2026-03-02T09:31:12.000Z',
      },
    ],
    next: '5e0c9a714b2d-1772443872000',
  } satisfies ChangeList,
  CustomerSummary: {
    currencies: [
      {
        currency: 'eur',
        remaining_cents: 470651,
        credited_cents: 0,
        statuses: [
          { status: 'open', count: 2, total_cents: 470651 },
          { status: 'paid', count: 1, total_cents: 11070 },
        ],
        months: [
          { month: '2026-03', status: 'paid', count: 1, total_cents: 11070 },
          { month: '2026-10', status: 'open', count: 2, total_cents: 470651 },
        ],
      },
    ],
  } satisfies CustomerSummary,
  AccountStatement: {
    ...{ from: '2026-03-01', to: '2026-03-31' },
    currencies: [
      { currency: 'eur', opening_cents: 0, debit_cents: 11070, credit_cents: 11070, closing_cents: 0 },
    ],
    entries: [
      {
        ...{ day: '2026-03-02', type: 'invoice', proof: 'document', number: 'FR A/123' },
        ...{ invoice_id: exampleInvoice.id, invoice_number: exampleInvoice.number, currency: 'eur' },
        ...{ debit_cents: 11070, credit_cents: 0, balance_cents: 11070 },
      },
      {
        ...{ day: '2026-03-02', type: 'payment', proof: 'platform', number: null },
        ...{ invoice_id: exampleInvoice.id, invoice_number: exampleInvoice.number, currency: 'eur' },
        ...{ debit_cents: 0, credit_cents: 11070, balance_cents: 0 },
      },
    ],
    ...{ page: 1, page_size: 50, total: 2, total_pages: 1 },
  } satisfies AccountStatement,
  CustomerBalance: {
    day: '2026-10-28',
    currencies: [
      {
        currency: 'eur',
        remaining_cents: 470651,
        count: 2,
        overdue_cents: 70651,
        overdue_count: 1,
        overdue_since: '2026-10-18',
        aging: {
          not_overdue_cents: 400000,
          overdue_1_30_cents: 70651,
          overdue_31_60_cents: 0,
          overdue_61_90_cents: 0,
          overdue_over_90_cents: 0,
        },
        credit_cents: 0,
        credit_count: 0,
      },
    ],
    invoices: [
      {
        ...{ id: 'in_1QmZ4tFaturaExample02', number: '2026-00041', issued_at: '2026-09-18T10:00:00.000Z' },
        ...{
          currency: 'eur',
          total_cents: 100651,
          document_number: 'FT G/41',
          paid_cents: 30000,
          remaining_cents: 70651,
          credit_cents: 0,
        },
        ...{ due_date: '2026-10-18', days_overdue: 10, can_be_paid: true },
      },
      {
        ...{ id: 'in_1QmZ4tFaturaExample03', number: '2026-00047', issued_at: '2026-10-20T10:00:00.000Z' },
        ...{ currency: 'eur', total_cents: 400000, document_number: null },
        ...{ paid_cents: 0, remaining_cents: 400000, credit_cents: 0 },
        ...{ due_date: '2026-11-19', days_overdue: 0, can_be_paid: true },
      },
    ],
    more: 0,
  } satisfies CustomerBalance,
}
