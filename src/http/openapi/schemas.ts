/** Input and output of each route: what parameters are read by, and the source of the OpenAPI document. */
import type { ErrorCode } from '../../errors.ts'
import {
  customerIdPattern,
  defaultPageSize,
  invoiceIdPattern,
  type ListQuery,
  maxPageSize,
} from '../../invoice.ts'
import { maxSearchWords } from '../../store/read-model/search.ts'
import { exampleInvoice } from './examples.ts'
import { refer, text, whole } from './resources.ts'
import {
  errorResponses,
  fileResponses,
  jsonContent,
  jsonResponses,
  nameHeader,
  readResponses,
  requestIdHeader,
} from './responses.ts'

const customerId = text('Customer ID; begins with `cus_`.', {
  pattern: customerIdPattern,
  examples: [exampleInvoice.customer_id],
})
const invoiceId = text('Invoice ID; begins with `in_`.', {
  pattern: invoiceIdPattern,
  examples: [exampleInvoice.id],
})
const parameters = <Properties extends object>(properties: Properties) => ({ type: 'object', properties })
const customerParams = parameters({ customerId })
const listQuery = parameters({
  page: whole('Page to return. Below 1 is the first page; above the last is the last.', {
    default: 1,
    examples: [1],
  }),
  page_size: whole(
    `Records per page. Above ${maxPageSize} is ${maxPageSize}; below 1 is ${defaultPageSize}.`,
    { default: defaultPageSize, examples: [25] },
  ),
  status: {
    allOf: [refer('InvoiceStatus')],
    description: "The payment platform's invoice status.",
    examples: ['paid'],
  },
  ix_status: text("The external document's status, compared exactly; filters independently of `status`.", {
    examples: ['settled'],
  }),
  date_from: text('First day of `issued_at`, in UTC, inclusive.', {
    format: 'date',
    examples: ['2026-01-01'],
  }),
  date_to: text('Last day of `issued_at`, in UTC, inclusive to its last millisecond.', {
    format: 'date',
    examples: ['2026-03-31'],
  }),
  q: text(
    'Free text. Every word must occur in the ID, number, names, e-mail, tax ID, or the external document’s ID, printed number or ATCUD, ' +
      'or begin the customer’s ID; ' +
      'case, accents and separators do not matter, and no character is a wildcard. ' +
      `At most ${maxSearchWords} different words.`,
    { maxLength: 200, examples: ['2026-00012'] },
  ),
} satisfies Record<keyof ListQuery, object>)

/** Bounds of a page of changes, and of a wait for the next. */
export const changeLimits = { usual: 100, most: 1_000, waitSeconds: 25 } as const
const changesQuery = parameters({
  after: text(
    'Cursor: `next` of the last answer. 0 is the beginning; without it, `next` is the end of the feed.',
    { examples: ['5e0c9a714b2d-1772443872000'] },
  ),
  wait: whole(`Seconds to wait for a change when there is none, at most ${changeLimits.waitSeconds}.`, {
    default: 0,
    examples: [25],
  }),
  limit: whole(
    `Changes to return at most. Above ${changeLimits.most} is ${changeLimits.most}; below 1 is 1.`,
    { default: changeLimits.usual, examples: [100] },
  ),
})

/** What the parameters are once they are read. */
export interface CustomerParams {
  customerId: string
}
export interface InvoiceParams extends CustomerParams {
  invoiceId: string
}
export interface InvoiceRoute {
  Params: InvoiceParams
}
export type ChangesQuery = { after?: string; wait?: number; limit?: number }

const secured = { tags: ['invoices'], security: [{ bearer: [] }] }
const conditional = parameters({
  'if-none-match': text('ETags the client holds; when one is still true, the answer is 304 without a body.'),
})

const ofCustomer = { ...secured, params: customerParams, headers: conditional }
const ofInvoice = { ...secured, params: parameters({ customerId, invoiceId }) }

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
    'Number and sum of the invoices by currency and status, and by month of `issued_at` in UTC, and what is to be paid: all of one moment.',
  response: readResponses('The sums; an unknown customer has none.', 'CustomerSummary'),
}

export const getBalanceSchema = {
  ...ofCustomer,
  operationId: 'getBalance',
  summary: 'Retrieve what is to be paid',
  description:
    "What a customer has to pay by currency, what of it is overdue and for how long, what stands in the customer's favour beside it, and the open invoices: all of one moment.",
  response: readResponses('The balance; an unknown customer has none.', 'CustomerBalance'),
}

export const getInvoiceSchema = {
  ...ofInvoice,
  operationId: 'getInvoice',
  summary: 'Retrieve invoice details',
  description: 'Totals, states, line items when available, and the paths of the PDFs.',
  headers: conditional,
  response: readResponses('The invoice.', 'InvoiceDetail', 'invoice_not_found'),
}

export const documentSchema = {
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
  response: fileResponses('The image.', 'image/png'),
}

const downloadSchema = (operationId: string, pdf: string) => ({
  ...ofInvoice,
  operationId,
  summary: `Download ${pdf}`,
  description: `Streams ${pdf}, fetched again for every request.`,
  response: fileResponses('The PDF.', 'application/pdf', nameHeader, 'document_not_issued'),
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
  response: jsonResponses(
    'The address.',
    'PaymentPage',
    'invoice_not_found',
    'route_not_found',
    'not_payable',
    'upstream_failed',
    'upstream_timeout',
  ),
}

const feed = {
  ...secured,
  querystring: changesQuery,
  response: jsonResponses(
    'Changes after the cursor; none when nothing changed in time.',
    'ChangeList',
    'cursor_expired',
  ),
}

export const listChangesSchema = {
  ...feed,
  operationId: 'listChanges',
  summary: "List a customer's changes",
  description:
    "Invoices of a customer that changed, in the order of the commits. A cursor is the customer's version, and belongs to this feed alone.",
  params: customerParams,
}

export const listAllChangesSchema = {
  ...feed,
  operationId: 'listAllChanges',
  summary: 'List changes of all customers',
  description:
    'Invoices that changed, in the order of the commits, for a token of all customers. A cursor belongs to this feed alone.',
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
