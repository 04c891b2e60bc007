/** The bodies that go out: the contract's resources, as the OpenAPI document describes them. */
import { changeKinds } from '../../change.ts'
import {
  customerIdPattern,
  invoiceIdPattern,
  invoiceStatuses,
  maxPageSize,
  syncStates,
} from '../../invoice.ts'
import { documentComponents } from './document-resources.ts'
import { exampleChanges, exampleDetail, exampleInvoice, examplePage, exampleSummary } from './examples.ts'
import {
  cents,
  currency,
  listOf,
  moment,
  numberOrNull,
  oneOf,
  resource,
  text,
  textOrNull,
  wholeOrNull,
} from './field-schemas.ts'
import { ErrorBody, ErrorCodeName } from './responses.ts'
import { Type } from './type.ts'

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
  ix_created_at: textOrNull(
    'Creation time of the external document, UTC with milliseconds; null when not known.',
    moment,
  ),
  subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
  discount_cents: cents('Sum of the discounts'),
  tax_cents: cents('Sum of the taxes; where prices include tax, a part of the subtotal'),
  tax_percent: numberOrNull('Tax rate in percent; null when no single rate describes the invoice.'),
  total_cents: cents('Total; negative when it is in favour of the customer'),
  currency,
  status: Type.Ref('InvoiceStatus'),
  ix_sync_state: Type.Ref('SyncState'),
  ix_id: wholeOrNull('ID of the external invoicing document; null until one is associated.'),
  ix_status: textOrNull("The external document's own status, for example `draft` or `settled`."),
}

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...detailFields } =
  fields

const sums = {
  status: Type.Ref('InvoiceStatus'),
  count: Type.Integer({ minimum: 1, description: 'Number of invoices.' }),
  total_cents: cents('Sum of `total_cents`, exact also beyond 2^53'),
}

/** The schemas that routes refer to by name. */
export const components = [
  resource('InvoiceSummary', 'An invoice as it stands in a list.', fields, exampleInvoice),
  resource(
    'InvoiceDetail',
    'One invoice whole.',
    {
      ...detailFields,
      lines: listOf('LineItem', 'All the line items, or none.'),
      lines_source: oneOf(
        ['payments', 'none'],
        '`payments` when the lines came from the payment platform, `none` when they are unavailable.',
      ),
      downloads: Type.Ref('Downloads'),
    },
    exampleDetail,
  ),
  resource(
    'InvoiceList',
    'One page of a list.',
    {
      invoices: Type.Array(Type.Ref('InvoiceSummary'), {
        maxItems: maxPageSize,
        description: 'The page: newest `issued_at` first, then highest `id`.',
      }),
      page: Type.Integer({ minimum: 1, description: 'The page returned.' }),
      page_size: Type.Integer({ minimum: 1, maximum: maxPageSize, description: 'Records per page used.' }),
      total: Type.Integer({ minimum: 0, description: 'All the records that match.' }),
      total_pages: Type.Integer({ minimum: 0, description: 'Pages in all; 0 when nothing matches.' }),
      source: oneOf(['synchronized_records'], 'Source of the data.'),
    },
    examplePage,
  ),
  resource('LineItem', 'One line of an invoice.', {
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
  }),
  resource('Downloads', 'Paths on this host; they take the same Bearer token.', {
    ix: textOrNull("Path of the external document's PDF; null until one is associated."),
    payments: text("Path of the payment platform's PDF."),
  }),
  ...documentComponents,
  resource('PaymentPage', 'The page where an invoice can be paid.', {
    url: Type.String({ format: 'uri', description: 'Address of the page; it holds a secret.' }),
  }),
  resource(
    'ChangeList',
    'Changes after a cursor.',
    {
      changes: listOf('Change', 'In the order of their commits.'),
      next: Type.Integer({ minimum: 0, description: 'Value of `after` for the next request.' }),
    },
    exampleChanges,
  ),
  resource('Change', 'An invoice that changed: retrieve it again.', {
    seq: Type.Integer({
      minimum: 1,
      description: 'Cursor behind this change, in the feed that it was read from.',
    }),
    customer_id: fields.customer_id,
    invoice_id: fields.id,
    kind: oneOf(
      changeKinds,
      "Kind of the change; `document`: only the external document's part of the invoice changed.",
    ),
    version: Type.Integer({ minimum: 1, description: "The customer's version with this change." }),
    at: Type.String({ ...moment, description: 'Time at which it was stored, UTC with milliseconds.' }),
  }),
  resource(
    'CustomerSummary',
    "All of a customer's sums.",
    { currencies: listOf('CurrencySummary', 'In the order of their codes.') },
    exampleSummary,
  ),
  resource('CurrencySummary', 'The sums of a currency.', {
    currency,
    credited_cents: cents('Sum of the credit notes in force of open invoices, which reduces the open total'),
    statuses: listOf('StatusSum', 'Statuses that have an invoice.'),
    months: listOf('MonthSum', 'Months and statuses that have an invoice, the earliest first.'),
  }),
  resource('StatusSum', 'The sum of a status.', sums),
  resource('MonthSum', 'The sum of a status in a month.', {
    month: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'UTC month of `issued_at`.' }),
    ...sums,
  }),
  Type.Enum([...invoiceStatuses], {
    $id: 'InvoiceStatus',
    type: 'string',
    description: "The payment platform's invoice status.",
  }),
  Type.Enum([...syncStates], {
    $id: 'SyncState',
    type: 'string',
    description: "Synchronization state of the invoice's external document.",
  }),
  resource('Health', 'The answer of a healthy process.', {
    status: oneOf(['ok'], 'Always `ok`; a failure is an error.'),
  }),
  resource('ResourceMetadata', 'Protected resource metadata (RFC 9728).', {
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
  }),
  ErrorBody,
  ErrorCodeName,
]
