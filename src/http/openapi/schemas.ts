/** Input and output of each route: the source of the validator, the static types and the OpenAPI document. */
import type { Static, TSchema } from 'typebox'
import type { ErrorCode } from '../../errors.ts'
import {
  customerIdPattern,
  defaultPageSize,
  type InvoiceStatus,
  invoiceIdPattern,
  type ListQuery,
  maxPageSize,
} from '../../invoice.ts'
import { maxSearchWords } from '../../store/read-model/search.ts'
import { exampleInvoice } from './examples.ts'
import {
  errorResponses,
  guardedResponses,
  jsonContent,
  pdfResponse,
  qrResponse,
  readResponses,
  requestIdHeader,
  tokenHeaders,
} from './responses.ts'
import { Type } from './type.ts'

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
export const whole = (description: string, example: number, fallback?: number) =>
  Type.Optional(
    Type.Integer({
      ...(fallback !== undefined && { default: fallback }),
      description,
      examples: [example],
    }),
  )
const day = (description: string, example: string) =>
  Type.Optional(Type.String({ format: 'date', description, examples: [example] }))

export const customerParams = Type.Object({ customerId })
const invoiceParams = Type.Object({ customerId, invoiceId })
const listQuery = Type.Object({
  page: whole('Page to return. Below 1 is the first page; above the last is the last.', 1, 1),
  page_size: whole(
    `Records per page. Above ${maxPageSize} is ${maxPageSize}; below 1 is ${defaultPageSize}.`,
    25,
    defaultPageSize,
  ),
  status: Type.Optional(
    Type.Unsafe<InvoiceStatus>({
      allOf: [Type.Ref('InvoiceStatus')],
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
        'Free text. Every word must occur in the ID, number, names, e-mail, tax ID, or the external document’s ID, printed number or ATCUD; ' +
        'case, accents and separators do not matter, and no character is a wildcard. ' +
        `At most ${maxSearchWords} different words.`,
      examples: ['2026-00012'],
    }),
  ),
} satisfies Record<keyof ListQuery, TSchema>)

export type CustomerParams = Static<typeof customerParams>
export type InvoiceParams = Static<typeof invoiceParams>

export const secured = { tags: ['invoices'], security: [{ bearer: [] }] }
/** Errors of routes that pass on a file. */
const transferred = [
  'invoice_not_found',
  'document_not_found',
  'upstream_failed',
  'document_not_ready',
  'upstream_timeout',
] as const
const conditional = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({
      description: 'ETags the client holds; when one is still true, the answer is 304 without a body.',
    }),
  ),
})

const ofCustomer = { ...secured, params: customerParams, headers: conditional }
const ofInvoice = { ...secured, params: invoiceParams }

export const listInvoicesSchema = {
  ...ofCustomer,
  operationId: 'listInvoices',
  summary: 'List customer invoices',
  description: "A customer's invoices, newest first, filtered by any combination of the parameters.",
  querystring: listQuery,
  response: readResponses('One page of the matching invoices; an unknown customer has none.', 'InvoiceList'),
}

export const getSummarySchema = {
  ...ofCustomer,
  operationId: 'getSummary',
  summary: "Retrieve a customer's sums",
  description:
    'Number and sum of the invoices by currency and status, and by month of `issued_at` in UTC: all of one moment.',
  response: readResponses('The sums; an unknown customer has none.', 'CustomerSummary'),
}

export const getInvoiceSchema = {
  ...ofInvoice,
  operationId: 'getInvoice',
  summary: 'Retrieve invoice details',
  description: 'Totals, states, line items when available, and the paths of the PDFs.',
  headers: conditional,
  response: readResponses('The invoice.', 'InvoiceDetail', 'invoice_not_found'),
}

export const getDocumentSchema = {
  ...ofInvoice,
  operationId: 'getDocument',
  summary: 'Retrieve the external document',
  description:
    'The external invoicing document of an invoice: printed number, ATCUD, taxes by rate, related documents.',
  headers: conditional,
  response: readResponses('The document.', 'InvoiceDocument', 'invoice_not_found', 'document_not_found'),
}

export const qrSchema = {
  ...ofInvoice,
  operationId: 'getDocumentQr',
  summary: "Retrieve the external document's QR code",
  description: 'Streams the image of the QR code, fetched again for every request.',
  response: guardedResponses(qrResponse, ...transferred),
}

const downloadSchema = (operationId: string, pdf: string) => ({
  ...ofInvoice,
  operationId,
  summary: `Download ${pdf}`,
  description: `Streams ${pdf}, fetched again for every request.`,
  response: guardedResponses(pdfResponse, ...transferred, 'document_not_issued'),
})

export const downloadSchemas = {
  ix: downloadSchema('downloadIxPdf', "the external document's PDF"),
  payments: downloadSchema('downloadPaymentsPdf', "the payment platform's PDF"),
}

export const paymentPageSchema = {
  ...ofInvoice,
  operationId: 'getPaymentPage',
  summary: 'Retrieve the payment page',
  description:
    "The address of the payment platform's own page where an open invoice can be paid, asked for at each request. It holds a secret and expires: open it at once, and store it nowhere.",
  response: guardedResponses(
    { description: 'The address.', headers: tokenHeaders, content: jsonContent('PaymentPage') },
    'invoice_not_found',
    'route_not_found',
    'not_payable',
    'upstream_failed',
    'upstream_timeout',
  ),
}

function operationSchema(
  operationId: string,
  summary: string,
  description: string,
  answer: { description: string; content: object },
  ...codes: ErrorCode[]
) {
  return {
    tags: ['operations'],
    security: [],
    operationId,
    summary,
    description,
    response: { 200: { ...answer, headers: requestIdHeader }, ...errorResponses(...codes) },
  }
}

const yes = { description: 'Yes.', content: jsonContent('Health') }

export const liveSchema = operationSchema(
  'getLiveness',
  'Is the process alive?',
  'Answers without asking the store.',
  yes,
)

export const readySchema = operationSchema(
  'getReadiness',
  'Can requests be served?',
  'Asks the store. Send traffic to this process only while this answers 200.',
  yes,
  'unavailable',
  'overloaded',
)

const openapi = { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } }

export const openapiSchema = operationSchema(
  'getOpenApi',
  'This document',
  'The OpenAPI description of this API.',
  { description: 'The document.', content: { 'application/json': openapi } },
  'overloaded',
)

export const resourceMetadataSchema = operationSchema(
  'getResourceMetadata',
  'Retrieve the identity provider',
  'The identity provider whose JWTs are accepted, after RFC 9728.',
  { description: 'The metadata.', content: jsonContent('ResourceMetadata') },
  'route_not_found',
  'overloaded',
)
