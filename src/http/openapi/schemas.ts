/**
 * Schemas of the parameters and answers of each route. The service reads parameters by these schemas, and the OpenAPI
 * document is made from them.
 */
import { entriesOfPage, type StatementQuery } from '../../domain/account.ts'
import { expansions } from '../../domain/expanded.ts'
import { customerIdPattern, invoiceIdPattern } from '../../domain/invoice.ts'
import { defaultPageSize, type ListQuery, maxPageSize } from '../../domain/list-query.ts'
import { maxSearchWords } from '../../store/sql/search.ts'
import { exampleInvoice } from './examples.ts'
import { fileResponses, jsonResponses, nameHeader, readResponses } from './responses.ts'
import { refer, text, whole } from './schema-parts.ts'

const customerId = text('Customer ID. It begins with `cus_`.', {
  pattern: customerIdPattern,
  examples: [exampleInvoice.customer_id],
})
const invoiceId = text('Invoice ID. It begins with `in_`.', {
  pattern: invoiceIdPattern,
  examples: [exampleInvoice.id],
})
const documentId = text("ID of a document in the certified document's `related`.", {
  pattern: '^[1-9][0-9]{0,14}$',
  examples: ['1002'],
})
const parameters = <Properties extends object>(properties: Properties) => ({ type: 'object', properties })
const customerParams = parameters({ customerId })
const expand = {
  type: 'array',
  items: refer('Expansion'),
  explode: false,
  description:
    'Members to add to each invoice, separated by commas. `document` adds its certified document in short. `payment` adds what is owed and what was paid. `taxes` adds tax base and tax by rate.',
  examples: [expansions],
}
const listQuery = parameters({
  page: whole(
    'Number of the page to return. A number below 1 returns the first page. A number above the last page returns the last page.',
    {
      default: 1,
      examples: [1],
    },
  ),
  page_size: whole(
    `Number of records per page. A number above ${maxPageSize} counts as ${maxPageSize}. A number below 1 counts as ${defaultPageSize}.`,
    { default: defaultPageSize, examples: [25] },
  ),
  status: {
    allOf: [refer('InvoiceStatus')],
    description: "The payment platform's invoice status.",
    examples: ['paid'],
  },
  ix_status: text(
    "The external document's status, which must be equal. This filter is independent of `status`.",
    {
      examples: ['settled'],
    },
  ),
  date_from: text('First day of `issued_at`, in UTC. This day is included.', {
    format: 'date',
    examples: ['2026-01-01'],
  }),
  date_to: text('Last day of `issued_at`, in UTC. The whole day is included.', {
    format: 'date',
    examples: ['2026-03-31'],
  }),
  q: text(
    'Free text. Every word must occur in the number, names, e-mail, tax ID, or the external document’s printed number or ATCUD, ' +
      'or begin the ID, the external document’s ID or the customer’s ID. ' +
      'Case, accents and separators do not matter. No character is a wildcard. ' +
      `At most ${maxSearchWords} different words.`,
    { maxLength: 200, examples: ['2026-00012'] },
  ),
  expand,
} satisfies Record<keyof ListQuery, object>)

/** Bounds of one page of changes, and of the wait for a change. */
export const changeLimits = { default: 100, max: 1_000, waitSeconds: 25 } as const
const changesQuery = parameters({
  after: text(
    'Cursor to start from, which is `next` of the last answer. 0 starts at the beginning. Without a cursor, the answer has no changes and its `next` is the end of the feed.',
    { examples: ['5e0c9a714b2d-1772443872000'] },
  ),
  wait: whole(
    `Number of seconds to wait for a change if there is none yet, at most ${changeLimits.waitSeconds}.`,
    {
      default: 0,
      examples: [25],
    },
  ),
  limit: whole(
    `Maximum number of changes to return. A number above ${changeLimits.max} counts as ${changeLimits.max}. A number below 1 counts as 1.`,
    {
      default: changeLimits.default,
      examples: [100],
    },
  ),
})

export interface CustomerParams {
  customerId: string
}
export interface InvoiceParams extends CustomerParams {
  invoiceId: string
}
export interface InvoiceRoute {
  Params: InvoiceParams
}
export interface RelatedRoute {
  Params: InvoiceParams & { documentId: string }
}
export type ChangesQuery = { after?: string; wait?: number; limit?: number }

const secured = { tags: ['invoices'], security: [{ bearer: [] }] }
const conditional = parameters({
  'if-none-match': text(
    'ETags of answers that the client has. If one of them is still current, the answer is 304 without a body.',
  ),
})

const ofCustomer = { ...secured, params: customerParams, headers: conditional }
const ofInvoice = { ...secured, params: parameters({ customerId, invoiceId }) }

export const listInvoicesSchema = {
  ...ofCustomer,
  operationId: 'listInvoices',
  summary: 'List customer invoices',
  description: "Returns a customer's invoices, newest first. All filters can be combined.",
  querystring: listQuery,
  response: readResponses(
    'One page of the matching invoices. For an unknown customer the page is empty.',
    'InvoiceList',
  ),
}

export const getSummarySchema = {
  ...ofCustomer,
  operationId: 'getSummary',
  summary: "Retrieve a customer's sums",
  description:
    'Returns the number and sum of the invoices of a customer by currency and status and by month of `issued_at` in UTC, and the amounts to be paid. All numbers are of the same moment.',
  response: readResponses('The sums. For an unknown customer there are none.', 'CustomerSummary'),
}

export const getBalanceSchema = {
  ...ofCustomer,
  operationId: 'getBalance',
  summary: 'Retrieve what is to be paid',
  description:
    "Returns the amounts that a customer has to pay by currency, the overdue part by age, credit in the customer's favour, and the open invoices. All numbers are of the same moment.",
  response: readResponses('The balance. For an unknown customer it is empty.', 'CustomerBalance'),
}

export const getStatementSchema = {
  ...ofCustomer,
  operationId: 'getStatement',
  summary: "Retrieve a customer's statement",
  description:
    'Returns the entries of a customer’s account, the earliest day first, with debit, credit and running balance by currency, and the balance before the first day. All numbers are of the same moment. Without `to`, the closing balance is the amount to be paid less the credit in the customer’s favour.',
  querystring: parameters({
    from: text(
      'First day of the period. This day is included. Without it, the statement starts at the beginning of the account.',
      {
        format: 'date',
        examples: ['2026-01-01'],
      },
    ),
    to: text(
      'Last day of the period. This day is included. Without it, the statement goes up to the end of the account.',
      {
        format: 'date',
        examples: ['2026-03-31'],
      },
    ),
    page: listQuery.properties.page,
    page_size: whole(
      `Number of entries per page. A number above ${entriesOfPage.max} counts as ${entriesOfPage.max}. A number below 1 counts as ${entriesOfPage.default}.`,
      { default: entriesOfPage.default, examples: [100] },
    ),
  } satisfies Record<keyof StatementQuery, object>),
  response: readResponses('The statement. For an unknown customer it has no entries.', 'AccountStatement'),
}

export const getInvoiceSchema = {
  ...ofInvoice,
  operationId: 'getInvoice',
  summary: 'Retrieve invoice details',
  description:
    'Returns the totals and states of an invoice, its line items if they are available, and the paths of its PDFs.',
  querystring: parameters({ expand }),
  headers: conditional,
  response: readResponses('The invoice.', 'InvoiceDetail', 'invoice_not_found'),
}

export const documentSchema = {
  ...ofInvoice,
  operationId: 'getDocument',
  summary: 'Retrieve the external document',
  description:
    'Returns the external document of an invoice with its printed number, ATCUD, taxes by rate and related documents.',
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

export const relatedPdfSchema = {
  ...downloadSchema('downloadRelatedPdf', "a related document's PDF"),
  params: parameters({ customerId, invoiceId, documentId }),
}

export const paymentPageSchema = {
  ...ofInvoice,
  operationId: 'getPaymentPage',
  summary: 'Retrieve the payment page',
  description:
    "Returns the address of the payment platform's page where an open invoice can be paid. Each request asks the payment platform. The address contains a secret and expires, so open it at once and do not store it.",
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
    'The changes after the cursor. There are none if nothing changed while the request waited.',
    'ChangeList',
    'cursor_expired',
  ),
}

export const listChangesSchema = {
  ...feed,
  operationId: 'listChanges',
  summary: "List a customer's changes",
  description:
    "Returns the changed invoices of a customer, in the order in which the changes were stored. A cursor is a version of the customer's invoices and works only in this feed.",
  params: customerParams,
}

export const listAllChangesSchema = {
  ...feed,
  operationId: 'listAllChanges',
  summary: 'List changes of all customers',
  description:
    'Returns the changed invoices of all customers, in the order in which the changes were stored. It needs a token for all customers. A cursor works only in this feed.',
}
