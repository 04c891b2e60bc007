/** The typed client of the API, for Node and browsers: `import { createClient } from 'fatura/client'`. */
import type { AccountStatement, StatementQuery } from '../domain/account.ts'
import type { CustomerBalance } from '../domain/balance.ts'
import type { Change, ChangeList } from '../domain/change.ts'
import {
  type CustomerSummary,
  type DocumentKind,
  type Invoice,
  type InvoiceDetail,
  type InvoiceDocument,
  type InvoiceFilters,
  type InvoiceList,
  type ListQuery,
  listParameters,
  maxPageSize,
} from '../domain/invoice.ts'
import { Answers, type Result } from './answers.ts'
import { FaturaError } from './fatura-error.ts'
import { type CallOptions, type ClientOptions, createSend } from './send.ts'

export type {
  AccountStatement,
  EntryProof,
  EntryType,
  StatementEntry,
  StatementQuery,
  StatementSum,
} from '../domain/account.ts'
export type { AgingBucket, CurrencyBalance, CustomerBalance, OpenInvoice } from '../domain/balance.ts'
export type { Change, ChangeKind, ChangeList } from '../domain/change.ts'
export type { ErrorCode } from '../domain/errors.ts'
export type { DocumentBrief, Expansion, PaymentBrief, TaxOfRate } from '../domain/expanded.ts'
export type {
  ConvertedTotal,
  CustomerSummary,
  DocumentAbout,
  DocumentKind,
  Invoice,
  InvoiceDetail,
  InvoiceDocument,
  InvoiceFilters,
  InvoiceList,
  InvoiceStatus,
  Line,
  LinesSource,
  ListQuery,
  StatusSum,
  SyncState,
} from '../domain/invoice.ts'
export type { FaturaErrorCode } from './fatura-error.ts'
export type { CallOptions, ClientOptions, Result }
export { FaturaError }

/** An invoice as it stands in a list. */
export type ListedInvoice = InvoiceList['invoices'][number]

export interface PdfDownload {
  /** Made from the document's own number; fit for any file system. */
  fileName: string
  size: number | null
  /** Errors when the PDF does not come whole. */
  body: ReadableStream<Uint8Array>
  requestId: string | null
}

/** A PDF of an invoice: from one of the systems, or of a document about the certified one, by its id there. */
export type PdfKind = DocumentKind | { related: number }

/** Each loop over it walks from the beginning; its fields are those of the current or last loop. */
export interface InvoiceWalk extends AsyncIterable<ListedInvoice> {
  /** Number of matching invoices by the newest page; null before the first. */
  readonly total: number | null
  /** Number of invoices given so far. */
  readonly seen: number
  /**
   * Whether anything of the customer's invoices changed between two pages. What was given is then no picture of one
   * moment: an invoice may be missing from it, or be as it was before. None is given twice in one place.
   */
  readonly changed: boolean
  /** Time until which the first page is known to follow the source. */
  readonly syncedAt: Date | null
}

type Expand = Pick<ListQuery, 'expand'>

export interface ChangesQuery {
  /** Null, the default, is for all customers: the token must be. */
  customer?: string | null
  /** Cursor; the default is the feed's end. */
  after?: string | undefined
  /** Most changes of one answer. Default: 100. */
  limit?: number
}

export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const send = createSend(options)
  const answers = new Answers(send, options.remember)
  const poll = <T>(path: string, call?: CallOptions) => answers.poll<T>(path, call)
  const ask = <T>(path: string, call?: CallOptions): Promise<T> =>
    send(path, { accept: 'application/json' }, async answer => JSON.parse(await answer.text()), call)

  function listChanges(query: ChangesQuery = {}, call?: CallOptions): Promise<ChangeList> {
    const { customer = null, after, limit = 100 } = query
    const feed = customer === null ? '/api/v1' : customerPath(customer)
    const cursor = after === undefined ? '' : `&after=${after}&wait=25`
    return ask(`${feed}/changes?limit=${limit}${cursor}`, call)
  }

  async function* changes(query: ChangesQuery = {}, call?: CallOptions): AsyncIterable<Change> {
    for (let { after } = query; ; ) {
      const { changes, next } = await listChanges({ ...query, after }, call)
      yield* changes
      after = next
    }
  }

  return {
    /** Changes after a cursor, without end; keep `cursor` of the last one to go on from there later. */
    changes,
    /** One answer of that feed: waits for a change for 25 s, if there is a cursor. */
    listChanges,
    invoices: {
      /** One page. `total` and `total_pages` count what there is beside it. */
      list: async (customerId: string, query: ListQuery = {}, call?: CallOptions) =>
        poll<InvoiceList>(listPath(customerId, query), call),
      /** All that match, newest first, page by page as they are asked for. */
      all: (customerId: string, query: InvoiceFilters & Expand = {}, call?: CallOptions) =>
        walkInvoices(page => {
          const path = listPath(customerId, { ...query, page, page_size: maxPageSize })
          // A walk is not remembered: it would push out what is polled.
          return answers.read(path, call)
        }),
    },
    invoice: {
      get: async (
        customerId: string,
        invoiceId: string,
        { expand = [], ...call }: Expand & CallOptions = {},
      ) => poll<InvoiceDetail>(`${invoicePath(customerId, invoiceId)}${queryOf({ expand })}`, call),
    },
    document: {
      /** The certified document of an invoice. */
      get: async (customerId: string, invoiceId: string, call?: CallOptions) =>
        poll<InvoiceDocument>(`${invoicePath(customerId, invoiceId)}/document`, call),
      /** The image of its QR code. */
      qr(customerId: string, invoiceId: string, call?: CallOptions): Promise<Blob> {
        const path = `${invoicePath(customerId, invoiceId)}/document/qr`
        const type = 'image/png'
        return send(
          path,
          { accept: type },
          async answer => new Blob([await answer.arrayBuffer()], { type }),
          call,
        )
      },
    },
    /** Number and sum of the customer's invoices by currency and status, and by month. */
    summary: async (customerId: string, call?: CallOptions) =>
      poll<CustomerSummary>(`${customerPath(customerId)}/summary`, call),
    /** What the customer has to pay, what of it is overdue, and the open invoices. Changes with the UTC day, too. */
    balance: async (customerId: string, call?: CallOptions) =>
      poll<CustomerBalance>(`${customerPath(customerId)}/balance`, call),
    /** A page of the entries of the customer's account, with the balance before its first day and after its last. */
    statement: async (customerId: string, query: StatementQuery = {}, call?: CallOptions) =>
      poll<AccountStatement>(`${customerPath(customerId)}/statement${queryOf({ ...query })}`, call),
    /** The payment platform's own page where an open invoice can be paid; asked for anew each time. */
    paymentPage: (customerId: string, invoiceId: string, call?: CallOptions) =>
      ask<{ url: string }>(`${invoicePath(customerId, invoiceId)}/payments/page`, call),
    /** Opens a PDF; waits while it is still being made. */
    downloadPdf(customerId: string, invoiceId: string, kind: PdfKind, call?: CallOptions) {
      const readPdf = async ({ headers, body }: Response): Promise<PdfDownload> => ({
        fileName: readFileName(headers.get('content-disposition')) ?? `${invoiceId}.pdf`,
        size: Number(headers.get('content-length')) || null,
        body: body as ReadableStream<Uint8Array>,
        requestId: headers.get('request-id'),
      })
      const which = typeof kind === 'string' ? kind : `related/${kind.related}`
      const path = `${invoicePath(customerId, invoiceId)}/${which}/download`
      return send(path, { accept: 'application/pdf' }, readPdf, call)
    },
  }
}

/** All the invoices that match, over as many pages as it takes. */
function walkInvoices(readPage: (page: number) => Promise<Result<InvoiceList>>): InvoiceWalk {
  const walk = {
    total: null as number | null,
    seen: 0,
    changed: false,
    syncedAt: null as Date | null,
    async *[Symbol.asyncIterator]() {
      walk.total = null
      walk.seen = 0
      walk.changed = false
      let first: Result<InvoiceList> | undefined
      let last: Invoice | undefined
      for (let page = 1, pages = 1; page <= pages; page++) {
        const answer = await readPage(page)
        first ??= answer
        const { invoices, total, total_pages } = answer.data
        pages = total_pages
        walk.total = total
        walk.syncedAt = first.syncedAt
        walk.changed ||= answer.etag !== first.etag || total !== first.data.total
        for (const invoice of invoices) {
          // After an insertion, a page begins with what the one before ended with.
          if (last !== undefined && !isAfter(invoice, last)) continue
          last = invoice
          walk.seen++
          yield invoice
        }
      }
      if (!walk.changed && walk.seen !== walk.total)
        throw new FaturaError(
          'unexpected_answer',
          `${walk.total} invoices were announced, and ${walk.seen} came.`,
        )
    },
  }
  return walk
}

/** Whether it comes later in the order of lists: newest first, then highest id. */
function isAfter(invoice: Invoice, last: Invoice): boolean {
  return invoice.issued_at === last.issued_at ? invoice.id < last.id : invoice.issued_at < last.issued_at
}

const customerPath = (customerId: string) => `/api/v1/client/${encodeURIComponent(customerId)}`

const invoicePath = (customerId: string, invoiceId: string) =>
  `${customerPath(customerId)}/invoice/${encodeURIComponent(invoiceId)}`

/** Refuses parameters that the service would ignore or lower, so that a part is never taken for the whole. */
function listPath(customerId: string, query: ListQuery): string {
  for (const name of Object.keys(query))
    if (!listParameters.includes(name))
      throw new TypeError(`${name} is no filter; there are ${listParameters.join(', ')}.`)
  const { page_size: size = 1 } = query
  if (!(size >= 1 && size <= maxPageSize))
    throw new RangeError(`page_size must be 1 to ${maxPageSize}; invoices.all gives all of them.`)
  return `${customerPath(customerId)}/invoices${queryOf({ ...query })}`
}

function queryOf(query: Readonly<Record<string, unknown>>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && String(value) !== '') given.set(name, String(value))
  return given.size > 0 ? `?${given}` : ''
}

/** RFC 6266: the extended name is the true one where there is one. */
function readFileName(disposition: string | null): string | undefined {
  const extended = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? '')?.[1]
  return extended ? decodeURIComponent(extended) : /filename="([^"]+)"/i.exec(disposition ?? '')?.[1]
}
