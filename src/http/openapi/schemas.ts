/**
 * Schemas of the parameters and answers of each route. Parameters are read by them, and the OpenAPI document is made
 * from them.
 */
import { entriesOfPage, type StatementQuery } from '../../domain/account.ts'
import { expansions } from '../../domain/expanded.ts'
import { customerIdPattern, invoiceIdPattern } from '../../domain/invoice.ts'
import { defaultPageSize, type ListQuery, maxPageSize } from '../../domain/list-query.ts'
import { maxSearchWords } from '../../store/sql/search.ts'
import { exampleInvoice } from './examples.ts'
import { fileResponses, jsonResponses, nameHeader, readResponses } from './responses.ts'
import { refer, text, whole } from './schema-parts.ts'

const customerId = text('Customer ID; begins with `cus_`.', {
  pattern: customerIdPattern,
  examples: [exampleInvoice.customer_id],
})
const invoiceId = text('Invoice ID; begins with `in_`.', {
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
    'Members to add to each invoice, separated by commas: `document`, its certified document in short, `payment`, what is owed on it and what was paid, and `taxes`, tax base and tax by rate.',
  examples: [expansions],
}
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
    'Cursor: `next` of the last answer. 0 is the beginning; without it, `next` is the end of the feed.',
    { examples: ['5e0c9a714b2d-1772443872000'] },
  ),
  wait: whole(`Seconds to wait for a change when there is none, at most ${changeLimits.waitSeconds}.`, {
    default: 0,
    examples: [25],
  }),
  limit: whole(`Changes to return at most. Above ${changeLimits.max} is ${changeLimits.max}; below 1 is 1.`, {
    default: changeLimits.default,
    examples: [100],
  }),
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

export const getStatementSchema = {
  ...ofCustomer,
  operationId: 'getStatement',
  summary: "Retrieve a customer's statement",
  description:
    'The entries of a customer’s account, the earliest day first, with debit, credit and running balance by currency, and the balance before the first day: all of one moment. Without `to`, the closing balance is what is to be paid less what stands in the customer’s favour.',
  querystring: parameters({
    from: text('First day, inclusive; without it, the account from its beginning.', {
      format: 'date',
      examples: ['2026-01-01'],
    }),
    to: text('Last day, inclusive; without it, the account up to its end.', {
      format: 'date',
      examples: ['2026-03-31'],
    }),
    page: listQuery.properties.page,
    page_size: whole(
      `Entries per page. Above ${entriesOfPage.max} is ${entriesOfPage.max}; below 1 is ${entriesOfPage.default}.`,
      { default: entriesOfPage.default, examples: [100] },
    ),
  } satisfies Record<keyof StatementQuery, object>),
  response: readResponses('The statement; an unknown customer has no entry.', 'AccountStatement'),
}

export const getInvoiceSchema = {
  ...ofInvoice,
  operationId: 'getInvoice',
  summary: 'Retrieve invoice details',
  description: 'Totals, states, line items when available, and the paths of the PDFs.',
  querystring: parameters({ expand }),
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

export const relatedPdfSchema = {
  ...downloadSchema('downloadRelatedPdf', "a related document's PDF"),
  params: parameters({ customerId, invoiceId, documentId }),
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
