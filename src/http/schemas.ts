/** What goes in and out of each route: the validator, the static types and the OpenAPI document come from here. */
import Type, { type Static } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import {
  customerIdPattern,
  type DocumentKind,
  defaultPageSize,
  invoiceIdPattern,
  invoiceStatuses,
  maximumPageSize,
  syncStates,
} from '../invoice.ts'
import { exampleDetail, exampleInvoice, examplePage } from './examples.ts'
import {
  ErrorBody,
  errorResponses,
  jsonContent,
  notModifiedResponse,
  pdfResponse,
  readHeaders,
} from './responses.ts'

const text = (description: string) => Type.String({ description })
const textOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description })
const wholeOrNull = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description })
const cents = (description: string) =>
  Type.Integer({ description: `${description}, in the currency's smallest unit.` })
const moment = { format: 'date-time', pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' }
const closed = { additionalProperties: false }

const fields = {
  id: Type.String({ pattern: invoiceIdPattern, description: "The payment platform's invoice ID." }),
  number: textOrNull('Invoice number; null until the invoice is finalized.'),
  display_name: text('Display name of the customer or company.'),
  customer_name: textOrNull('Customer name.'),
  customer_id: Type.String({ pattern: customerIdPattern, description: 'Customer ID.' }),
  customer_email: textOrNull('E-mail address of the customer.'),
  company_name: textOrNull('Company name.'),
  customer_tax_id: textOrNull('Tax identifier of the customer.'),
  issued_at: Type.String({ ...moment, description: 'When the invoice was issued, UTC with milliseconds.' }),
  ix_created_at: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    ...moment,
    description: 'When the external document was created, UTC with milliseconds; null when not known.',
  }),
  subtotal_cents: cents('Subtotal before discounts and exclusive tax'),
  discount_cents: cents('Sum of the discounts'),
  tax_cents: cents('Sum of the taxes'),
  tax_percent: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    description: 'Tax rate in percent; null when no single rate describes the invoice.',
  }),
  total_cents: cents('Total; negative when it is in favour of the customer'),
  currency: Type.String({ pattern: '^[a-z]{3}$', description: 'Lower-case ISO 4217 currency code.' }),
  status: Type.Enum([...invoiceStatuses], {
    type: 'string',
    description: "The payment platform's invoice status.",
  }),
  ix_sync_state: Type.Enum([...syncStates], {
    type: 'string',
    description: "How far the invoice's external document has come.",
  }),
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
    description: textOrNull('What was sold.'),
    quantity: wholeOrNull('Whole units; null when the line has none.'),
    subtotal_cents: cents('Before discounts and taxes'),
    discount_cents: cents("Discounts, the line's share of the invoice's discounts included"),
    discount_percent: Type.Number({ description: 'Discount in percent of the subtotal.' }),
    unit_amount_cents: wholeOrNull(
      "Price of one unit, in the currency's smallest unit; null when it has none.",
    ),
    amount_cents: cents('Subtotal less discount'),
    currency: fields.currency,
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
      maxItems: maximumPageSize,
      description: 'The page: newest `issued_at` first, then highest `id`.',
    }),
    page: Type.Integer({ minimum: 1, description: 'The page returned.' }),
    page_size: Type.Integer({ minimum: 1, maximum: maximumPageSize, description: 'Records per page used.' }),
    total: Type.Integer({ minimum: 0, description: 'All the records that match.' }),
    total_pages: Type.Integer({ minimum: 0, description: 'Pages in all; 0 when nothing matches.' }),
    source: Type.Enum(['synchronized_records'], {
      type: 'string',
      description: 'Where the data was read from.',
    }),
  },
  { ...closed, $id: 'InvoiceList', description: 'One page of a list.', examples: [examplePage] },
)

const customerId = Type.String({
  pattern: customerIdPattern,
  description: 'Customer ID; begins with `cus_`.',
  examples: [exampleInvoice.customer_id],
})
const invoiceId = Type.String({
  pattern: invoiceIdPattern,
  description: 'Invoice ID; begins with `in_`.',
  examples: [exampleInvoice.id],
})
const day = (description: string, example: string) =>
  Type.Optional(Type.String({ format: 'date', description, examples: [example] }))

const customerParams = Type.Object({ customerId })
const invoiceParams = Type.Object({ customerId, invoiceId })
const listQuery = Type.Object({
  page: Type.Optional(
    Type.Integer({
      default: 1,
      description: 'Page to return. Below 1 is the first page; above the last is the last.',
      examples: [1],
    }),
  ),
  page_size: Type.Optional(
    Type.Integer({
      default: defaultPageSize,
      description: `Records per page. Above ${maximumPageSize} is ${maximumPageSize}; below 1 is ${defaultPageSize}.`,
      examples: [25],
    }),
  ),
  status: Type.Optional(
    Type.Enum([...invoiceStatuses], {
      type: 'string',
      description: "The payment platform's invoice status.",
      examples: ['paid'],
    }),
  ),
  ix_status: Type.Optional(
    Type.String({
      description: "The external document's status, compared exactly; filters independently of `status`.",
      examples: ['settled'],
    }),
  ),
  date_from: day('First day of `issued_at`, in UTC, inclusive.', '2026-01-01'),
  date_to: day('Last day of `issued_at`, in UTC, inclusive to its last millisecond.', '2026-03-31'),
  q: Type.Optional(
    Type.String({
      maxLength: 200,
      description:
        'Free text. Every word must occur in the ID, number, names, e-mail, tax ID or external document ID; ' +
        'case, accents and separators do not matter, and no character is a wildcard.',
      examples: ['2026-00012'],
    }),
  ),
})

export type CustomerParams = Static<typeof customerParams>
export type InvoiceParams = Static<typeof invoiceParams>
export type ListQuery = Static<typeof listQuery>

const secured = { tags: ['invoices'], security: [{ bearer: [] }] }
/** What every route behind a token may answer. */
const guarded = [
  'invalid_parameter',
  'missing_token',
  'invalid_token',
  'insufficient_scope',
  'rate_limited',
  'unavailable',
] as const
const conditional = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({
      description: 'ETags the client holds; when one is still true, the answer is 304 without a body.',
    }),
  ),
})

export const listInvoicesSchema = {
  ...secured,
  operationId: 'listInvoices',
  summary: 'List customer invoices',
  description: "A customer's invoices, newest first, filtered by any combination of the parameters.",
  params: customerParams,
  querystring: listQuery,
  headers: conditional,
  response: {
    200: {
      description: 'One page of the matching invoices; an unknown customer has none.',
      headers: readHeaders,
      content: jsonContent('InvoiceList'),
    },
    304: notModifiedResponse,
    ...errorResponses(...guarded),
  },
}

export const getInvoiceSchema = {
  ...secured,
  operationId: 'getInvoice',
  summary: 'Retrieve invoice details',
  description: 'Totals, states, line items when available, and where the PDFs are.',
  params: invoiceParams,
  headers: conditional,
  response: {
    200: {
      description: 'The invoice.',
      headers: readHeaders,
      content: jsonContent('InvoiceDetail'),
    },
    304: notModifiedResponse,
    ...errorResponses(...guarded, 'invoice_not_found'),
  },
}

const documentNames: Record<DocumentKind, string> = {
  ix: "the external document's PDF",
  payments: "the payment platform's PDF",
}

function downloadSchema(kind: DocumentKind) {
  return {
    ...secured,
    operationId: kind === 'ix' ? 'downloadExternalDocument' : 'downloadPaymentDocument',
    summary: `Download ${documentNames[kind]}`,
    description: `Streams ${documentNames[kind]}, fetched anew for every request.`,
    params: invoiceParams,
    response: {
      200: pdfResponse,
      ...errorResponses(
        ...guarded,
        'invoice_not_found',
        'document_not_found',
        'document_not_issued',
        'upstream_failed',
        'document_not_ready',
        'upstream_timeout',
      ),
    },
  }
}

export const downloadSchemas = { ix: downloadSchema('ix'), payments: downloadSchema('payments') }

const HealthBody = Type.Object(
  { status: Type.Enum(['ok'], { type: 'string', description: 'Always `ok`; a failure is an error.' }) },
  { ...closed, $id: 'Health', description: 'The answer of a healthy process.' },
)

function healthSchema(operationId: string, summary: string, description: string, ...codes: ErrorCode[]) {
  return {
    tags: ['operations'],
    security: [],
    operationId,
    summary,
    description,
    response: { 200: { description: 'Yes.', content: jsonContent('Health') }, ...errorResponses(...codes) },
  }
}

export const liveSchema = healthSchema('isLive', 'Is the process alive?', 'Answers without asking the store.')
export const readySchema = healthSchema(
  'isReady',
  'Can requests be served?',
  'Asks the store. Send traffic to this process only while this answers 200.',
  'unavailable',
)

export const openapiSchema = {
  tags: ['operations'],
  security: [],
  operationId: 'getOpenapi',
  summary: 'This document',
  description: 'The OpenAPI description of this API.',
  response: {
    200: {
      description: 'The document.',
      content: {
        'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } },
      },
    },
    ...errorResponses(),
  },
}

/** What the routes' schemas refer to by name. */
export const components = [
  InvoiceSummary,
  InvoiceDetail,
  InvoiceList,
  LineItem,
  Downloads,
  HealthBody,
  ErrorBody,
]
