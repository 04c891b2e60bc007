/** The bodies that go out: the contract's resources, as the OpenAPI document describes them. */

import { changeKinds } from '../../change.ts'
import {
  customerIdPattern,
  invoiceIdPattern,
  invoiceStatuses,
  maxPageSize,
  syncStates,
} from '../../invoice.ts'
import { DocumentTax, InvoiceDocument, RelatedDocument } from './document-resources.ts'
import { exampleChanges, exampleDetail, exampleInvoice, examplePage, exampleSummary } from './examples.ts'
import { cents, closed, currency, moment, text, textOrNull, wholeOrNull } from './field-schemas.ts'
import { ErrorBody, ErrorCodeName } from './responses.ts'
import { Type } from './type.ts'

const InvoiceStatus = Type.Enum([...invoiceStatuses], {
  $id: 'InvoiceStatus',
  type: 'string',
  description: "The payment platform's invoice status.",
})

const SyncState = Type.Enum([...syncStates], {
  $id: 'SyncState',
  type: 'string',
  description: "Synchronization state of the invoice's external document.",
})

const fields = {
  id: Type.String({ pattern: invoiceIdPattern, description: "The payment platform's invoice ID." }),
  number: textOrNull('Invoice number; null until the invoice is finalized.'),
  display_name: text('Display name of the customer or company.'),
  customer_name: textOrNull('Customer name.'),
  customer_id: Type.String({ pattern: customerIdPattern, description: 'Customer ID.' }),
  customer_email: textOrNull('E-mail address of the customer.'),
  company_name: textOrNull('Company name.'),
  customer_tax_id: textOrNull('Tax identifier of the customer.'),
  issued_at: Type.String({ ...moment, description: 'Time of issue, UTC with milliseconds.' }),
  ix_created_at: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    ...moment,
    description: 'Creation time of the external document, UTC with milliseconds; null when not known.',
  }),
  subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
  discount_cents: cents('Sum of the discounts'),
  tax_cents: cents('Sum of the taxes; where prices include tax, a part of the subtotal'),
  tax_percent: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    description: 'Tax rate in percent; null when no single rate describes the invoice.',
  }),
  total_cents: cents('Total; negative when it is in favour of the customer'),
  currency,
  status: Type.Ref('InvoiceStatus'),
  ix_sync_state: Type.Ref('SyncState'),
  ix_id: wholeOrNull('ID of the external invoicing document; null until one is associated.'),
  ix_status: textOrNull("The external document's own status, for example `draft` or `settled`."),
}

const InvoiceSummary = Type.Object(fields, {
  ...closed,
  $id: 'InvoiceSummary',
  description: 'An invoice as it stands in a list.',
  examples: [exampleInvoice],
})

const LineItem = Type.Object(
  {
    id: text("The payment platform's line ID."),
    description: textOrNull('Description of the item.'),
    quantity: wholeOrNull('Whole units; null when the line has none.'),
    subtotal_cents: cents('Before discounts and exclusive tax'),
    discount_cents: cents("Discounts, the line's share of the invoice's discounts included"),
    discount_percent: Type.Number({ description: 'Discount in percent of the subtotal.' }),
    unit_amount_cents: wholeOrNull(
      "Price of one unit, in the currency's smallest unit; null when it has none.",
    ),
    amount_cents: cents('Subtotal less discount'),
    currency,
  },
  { ...closed, $id: 'LineItem', description: 'One line of an invoice.' },
)

const Downloads = Type.Object(
  {
    ix: textOrNull("Path of the external document's PDF; null until one is associated."),
    payments: text("Path of the payment platform's PDF."),
  },
  { ...closed, $id: 'Downloads', description: 'Paths on this host; they take the same Bearer token.' },
)

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...detailFields } =
  fields

const InvoiceDetail = Type.Object(
  {
    ...detailFields,
    lines: Type.Array(Type.Ref('LineItem'), { description: 'All the line items, or none.' }),
    lines_source: Type.Enum(['payments', 'none'], {
      type: 'string',
      description:
        '`payments` when the lines came from the payment platform, `none` when they are unavailable.',
    }),
    downloads: Type.Ref('Downloads'),
  },
  { ...closed, $id: 'InvoiceDetail', description: 'One invoice whole.', examples: [exampleDetail] },
)

const InvoiceList = Type.Object(
  {
    invoices: Type.Array(Type.Ref('InvoiceSummary'), {
      maxItems: maxPageSize,
      description: 'The page: newest `issued_at` first, then highest `id`.',
    }),
    page: Type.Integer({ minimum: 1, description: 'The page returned.' }),
    page_size: Type.Integer({ minimum: 1, maximum: maxPageSize, description: 'Records per page used.' }),
    total: Type.Integer({ minimum: 0, description: 'All the records that match.' }),
    total_pages: Type.Integer({ minimum: 0, description: 'Pages in all; 0 when nothing matches.' }),
    source: Type.Enum(['synchronized_records'], {
      type: 'string',
      description: 'Source of the data.',
    }),
  },
  { ...closed, $id: 'InvoiceList', description: 'One page of a list.', examples: [examplePage] },
)

const sums = {
  status: Type.Ref('InvoiceStatus'),
  count: Type.Integer({ minimum: 1, description: 'Number of invoices.' }),
  total_cents: cents('Sum of `total_cents`, exact also beyond 2^53'),
}

const StatusSum = Type.Object(sums, { ...closed, $id: 'StatusSum', description: 'The sum of a status.' })

const MonthSum = Type.Object(
  {
    month: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'UTC month of `issued_at`.' }),
    ...sums,
  },
  { ...closed, $id: 'MonthSum', description: 'The sum of a status in a month.' },
)

const CurrencySummary = Type.Object(
  {
    currency,
    credited_cents: cents('Sum of the credit notes in force of open invoices, which reduces the open total'),
    statuses: Type.Array(Type.Ref('StatusSum'), { description: 'Statuses that have an invoice.' }),
    months: Type.Array(Type.Ref('MonthSum'), {
      description: 'Months and statuses that have an invoice, the earliest first.',
    }),
  },
  { ...closed, $id: 'CurrencySummary', description: 'The sums of a currency.' },
)

const CustomerSummary = Type.Object(
  { currencies: Type.Array(Type.Ref('CurrencySummary'), { description: 'In the order of their codes.' }) },
  {
    ...closed,
    $id: 'CustomerSummary',
    description: "All of a customer's sums.",
    examples: [exampleSummary],
  },
)

const Change = Type.Object(
  {
    seq: Type.Integer({
      minimum: 1,
      description: 'Cursor behind this change, in the feed that it was read from.',
    }),
    customer_id: fields.customer_id,
    invoice_id: fields.id,
    kind: Type.Enum([...changeKinds], {
      type: 'string',
      description:
        "Kind of the change; `document`: only the external document's part of the invoice changed.",
    }),
    version: Type.Integer({ minimum: 1, description: "The customer's version with this change." }),
    at: Type.String({ ...moment, description: 'Time at which it was stored, UTC with milliseconds.' }),
  },
  { ...closed, $id: 'Change', description: 'An invoice that changed: retrieve it again.' },
)

const ChangeList = Type.Object(
  {
    changes: Type.Array(Type.Ref('Change'), { description: 'In the order of their commits.' }),
    next: Type.Integer({ minimum: 0, description: 'Value of `after` for the next request.' }),
  },
  { ...closed, $id: 'ChangeList', description: 'Changes after a cursor.', examples: [exampleChanges] },
)

const PaymentPage = Type.Object(
  { url: Type.String({ format: 'uri', description: 'Address of the page; it holds a secret.' }) },
  {
    ...closed,
    $id: 'PaymentPage',
    description: 'The page where an invoice can be paid.',
  },
)

const HealthBody = Type.Object(
  { status: Type.Enum(['ok'], { type: 'string', description: 'Always `ok`; a failure is an error.' }) },
  { ...closed, $id: 'Health', description: 'The answer of a healthy process.' },
)

const ResourceMetadata = Type.Object(
  {
    resource: text('The address of this API.'),
    authorization_servers: Type.Optional(
      Type.Array(Type.String(), { description: 'The issuers whose tokens are accepted.' }),
    ),
    scopes_supported: Type.Optional(
      Type.Array(Type.String(), { description: 'The scopes that a token must have.' }),
    ),
    bearer_methods_supported: Type.Array(Type.String(), {
      description: 'Way to send a token: always `header`.',
    }),
    resource_name: text('Name of this API.'),
  },
  { ...closed, $id: 'ResourceMetadata', description: 'Protected resource metadata (RFC 9728).' },
)

/** The schemas that routes refer to by name. */
export const components = [
  InvoiceSummary,
  InvoiceDetail,
  InvoiceList,
  LineItem,
  Downloads,
  InvoiceDocument,
  DocumentTax,
  RelatedDocument,
  PaymentPage,
  ChangeList,
  Change,
  CustomerSummary,
  CurrencySummary,
  StatusSum,
  MonthSum,
  InvoiceStatus,
  SyncState,
  HealthBody,
  ResourceMetadata,
  ErrorBody,
  ErrorCodeName,
]
