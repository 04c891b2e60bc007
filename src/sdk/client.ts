/** The typed client of the API, for Node and browsers: `import { createClient } from 'fatura/client'`. */
import type { AccountStatement, StatementQuery } from '../domain/account.ts'
import type { CustomerBalance } from '../domain/balance.ts'
import type { Change, ChangeList } from '../domain/change.ts'
import type {
  CustomerSummary,
  DocumentKind,
  Invoice,
  InvoiceDetail,
  InvoiceDocument,
  InvoiceList,
} from '../domain/invoice.ts'
import { type InvoiceFilters, type ListQuery, listParameters, maxPageSize } from '../domain/list-query.ts'
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
  InvoiceList,
  InvoiceStatus,
  Line,
  LinesSource,
  StatusSum,
  SyncState,
} from '../domain/invoice.ts'
export type { InvoiceFilters, ListQuery } from '../domain/list-query.ts'
export type { FaturaErrorCode } from './fatura-error.ts'
export type { CallOptions, ClientOptions, Result }
export { FaturaError }

export type ListedInvoice = InvoiceList['invoices'][number]

export interface PdfDownload {
  /** File name made from the document's number. Valid on any file system. */
  fileName: string
  size: number | null
  /** The PDF's bytes. The stream fails when the PDF does not arrive completely. */
  body: ReadableStream<Uint8Array>
  requestId: string | null
}

/**
 * Which PDF of an invoice. `related` is the InvoiceXpress id of a document about the certified one, for example a
 * credit note.
 */
export type PdfKind = DocumentKind | { related: number }

/**
 * The matching invoices, requested page by page. Each loop starts again at the first page. The fields describe the
 * current or last loop.
 */
export interface InvoiceWalk extends AsyncIterable<ListedInvoice> {
  /** Number of matching invoices, as the newest page reports it. Null before the first page. */
  readonly total: number | null
  /** Number of invoices that were yielded so far. */
  readonly seen: number
  /**
   * Whether any of the customer's invoices changed between two pages. An invoice may then be missing or outdated. An
   * invoice comes twice only if its date of issue changed.
   */
  readonly changed: boolean
  /** Time until which the first page is known to follow its source. */
  readonly syncedAt: Date | null
}

type Expand = Pick<ListQuery, 'expand'>

export interface ChangesQuery {
  /** Null, the default, means all customers. The token must then be valid for all customers. */
  customer?: string | null
  /** Cursor to continue from. Default: the end of the feed. */
  after?: string | undefined
  /** Maximum number of changes in one answer. Default: 100. */
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
    /** Yields changes after a cursor, without end. Keep the `cursor` of the last change to continue later. */
    changes,
    /** Reads the feed of changes once. With a cursor, the service waits up to 25 s for a change. */
    listChanges,
    invoices: {
      /** One page of the list. `total` and `total_pages` count the whole list. */
      list: async (customerId: string, query: ListQuery = {}, call?: CallOptions) =>
        poll<InvoiceList>(listPath(customerId, query), call),
      /** All matching invoices, newest first. Each page is requested when the loop needs it. */
      all: (customerId: string, query: InvoiceFilters & Expand = {}, call?: CallOptions) =>
        readAllPages(page => {
          const path = listPath(customerId, { ...query, page, page_size: maxPageSize })
          // Pages of a full pass are not kept, because they would push out the polled answers.
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
      get: async (customerId: string, invoiceId: string, call?: CallOptions) =>
        poll<InvoiceDocument>(`${invoicePath(customerId, invoiceId)}/document`, call),
      /** The PNG image of the document's QR code. */
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
    /**
     * The amount that the customer has to pay, the overdue part, and the open invoices. The answer also changes with
     * the UTC day.
     */
    balance: async (customerId: string, call?: CallOptions) =>
      poll<CustomerBalance>(`${customerPath(customerId)}/balance`, call),
    /** One page of the entries of the customer's account, with the balance before and after the period. */
    statement: async (customerId: string, query: StatementQuery = {}, call?: CallOptions) =>
      poll<AccountStatement>(`${customerPath(customerId)}/statement${queryOf({ ...query })}`, call),
    /**
     * The payment platform's own page where an open invoice can be paid. The service asks for its URL anew each time.
     */
    paymentPage: (customerId: string, invoiceId: string, call?: CallOptions) =>
      ask<{ url: string }>(`${invoicePath(customerId, invoiceId)}/payments/page`, call),
    /** Opens a PDF. Waits while the service reports that the PDF is still being made. */
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

function readAllPages(readPage: (page: number) => Promise<Result<InvoiceList>>): InvoiceWalk {
  const loop = {
    total: null as number | null,
    seen: 0,
    changed: false,
    syncedAt: null as Date | null,
    async *[Symbol.asyncIterator]() {
      loop.total = null
      loop.seen = 0
      loop.changed = false
      let first: Result<InvoiceList> | undefined
      let last: Invoice | undefined
      for (let page = 1, pages = 1; page <= pages; page++) {
        const answer = await readPage(page)
        first ??= answer
        const { invoices, total, total_pages } = answer.data
        pages = total_pages
        loop.total = total
        loop.syncedAt = first.syncedAt
        loop.changed ||= answer.etag !== first.etag || total !== first.data.total
        for (const invoice of invoices) {
          // After an insertion, a page repeats the last invoices of the page before.
          if (last !== undefined && !isAfter(invoice, last)) continue
          last = invoice
          loop.seen++
          yield invoice
        }
      }
      if (!loop.changed && loop.seen !== loop.total)
        throw new FaturaError(
          'unexpected_answer',
          `${loop.total} invoices were announced, and ${loop.seen} came.`,
        )
    },
  }
  return loop
}

/** Whether `invoice` comes after `last` in a list. Lists are sorted by newest first, then by highest id. */
function isAfter(invoice: Invoice, last: Invoice): boolean {
  return invoice.issued_at === last.issued_at ? invoice.id < last.id : invoice.issued_at < last.issued_at
}

const customerPath = (customerId: string) => `/api/v1/client/${encodeURIComponent(customerId)}`

const invoicePath = (customerId: string, invoiceId: string) =>
  `${customerPath(customerId)}/invoice/${encodeURIComponent(invoiceId)}`

/**
 * Throws on parameters that the service would ignore or lower. The caller could take a part of the list for the
 * whole.
 */
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

/** RFC 6266: `filename*` is preferred, because `filename` may only approximate the name. */
function readFileName(disposition: string | null): string | undefined {
  const extended = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? '')?.[1]
  return extended ? decodeURIComponent(extended) : /filename="([^"]+)"/i.exec(disposition ?? '')?.[1]
}
