/** The typed client of the API, for Node and browsers: `import { createClient } from 'fatura/client'`. */
import type { Change, ChangeList } from '../change.ts'
import {
  type CustomerSummary,
  type DocumentKind,
  type InvoiceDetail,
  type InvoiceDocument,
  type InvoiceFilters,
  type InvoiceList,
  type ListQuery,
  listParameters,
  maxPageSize,
} from '../invoice.ts'
import { FaturaError } from './fatura-error.ts'
import { type CallOptions, type ClientOptions, createSend } from './send.ts'
import { type InvoiceWalk, walkInvoices } from './walk-invoices.ts'

export type { Change, ChangeKind, ChangeList } from '../change.ts'
export type { ErrorCode } from '../errors.ts'
export type {
  CustomerSummary,
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
} from '../invoice.ts'
export type { FaturaErrorCode } from './fatura-error.ts'
export type { CallOptions, ClientOptions, InvoiceWalk }
export { FaturaError }

export interface Result<T> {
  /** While nothing changed, the very object that the last call gave. It is frozen. */
  data: T
  /** Time until which the records are known to follow their source; null before the first synchronization. */
  syncedAt: Date | null
  /** Changes with any of the customer's invoices. */
  etag: string | null
  requestId: string | null
}

export interface PdfDownload {
  /** Made from the document's own number; fit for any file system. */
  fileName: string
  /** Bytes, if known. */
  size: number | null
  /** Errors when the PDF does not come whole. */
  body: ReadableStream<Uint8Array>
  requestId: string | null
}

export interface ChangesQuery {
  /** Null, the default, is for all customers: the token must be. */
  customer?: string | null
  /** Cursor; the default is the feed's end. */
  after?: number | undefined
  /** Most changes of one answer. Default: 100. */
  limit?: number
}

export interface Client {
  invoices: {
    /** One page. `total` and `total_pages` count what there is beside it. */
    list(customerId: string, query?: ListQuery, call?: CallOptions): Promise<Result<InvoiceList>>
    /** All that match, newest first, page by page as they are asked for. */
    all(customerId: string, filters?: InvoiceFilters, call?: CallOptions): InvoiceWalk
  }
  invoice: {
    get(customerId: string, invoiceId: string, call?: CallOptions): Promise<Result<InvoiceDetail>>
  }
  document: {
    /** The certified document of an invoice. */
    get(customerId: string, invoiceId: string, call?: CallOptions): Promise<Result<InvoiceDocument>>
    /** The image of its QR code. */
    qr(customerId: string, invoiceId: string, call?: CallOptions): Promise<Blob>
  }
  /** Number and sum of the customer's invoices by currency and status, and by month. */
  summary(customerId: string, call?: CallOptions): Promise<Result<CustomerSummary>>
  /** Changes after a cursor, without end; keep `seq` of the last one to go on from there later. */
  changes(query?: ChangesQuery, call?: CallOptions): AsyncIterable<Change>
  /** One answer of that feed: waits for a change for 25 s, if there is a cursor. */
  listChanges(query?: ChangesQuery, call?: CallOptions): Promise<ChangeList>
  /** The payment platform's own page where an open invoice can be paid; asked for anew each time. */
  paymentPage(customerId: string, invoiceId: string, call?: CallOptions): Promise<{ url: string }>
  /** Opens a PDF; waits while it is still being made. */
  downloadPdf(
    customerId: string,
    invoiceId: string,
    kind: DocumentKind,
    call?: CallOptions,
  ): Promise<PdfDownload>
}

interface Held {
  etag: string
  data: unknown
}

export function createClient(options: ClientOptions): Client {
  const send = createSend(options)
  const { remember = 100 } = options
  /** The last answers by path, so that a poll can be answered 304. The one that was read longest ago makes room. */
  const memory = new Map<string, Held>()

  function read<T>(path: string, call: CallOptions, held: Held | undefined): Promise<Result<T>> {
    const condition = held && { 'if-none-match': held.etag }
    return send(path, { accept: 'application/json', ...condition }, call, async answer => {
      const syncedAt = answer.headers.get('fatura-synced-at')
      return {
        data: (answer.status === 304 ? held?.data : JSON.parse(await answer.text(), freeze)) as T,
        syncedAt: syncedAt === null ? null : new Date(syncedAt),
        etag: answer.headers.get('etag'),
        requestId: answer.headers.get('request-id'),
      }
    })
  }

  async function poll<T>(path: string, call: CallOptions): Promise<Result<T>> {
    const result = await read<T>(path, call, memory.get(path))
    const { etag, data } = result
    memory.delete(path)
    if (etag !== null) memory.set(path, { etag, data })
    const [oldest = ''] = memory.keys()
    if (memory.size > remember) memory.delete(oldest)
    return result
  }

  const ask = <T>(path: string, call: CallOptions): Promise<T> =>
    send(path, { accept: 'application/json' }, call, async answer => JSON.parse(await answer.text()))

  function listChanges(query: ChangesQuery = {}, call: CallOptions = {}): Promise<ChangeList> {
    const { customer = null, after, limit = 100 } = query
    const feed = customer === null ? '/api/v1' : customerPath(customer)
    const cursor = after === undefined ? '' : `&after=${after}&wait=25`
    return ask(`${feed}/changes?limit=${limit}${cursor}`, call)
  }

  async function* follow(query: ChangesQuery, call: CallOptions): AsyncGenerator<Change> {
    for (let { after } = query; ; ) {
      const { changes, next } = await listChanges({ ...query, after }, call)
      yield* changes
      after = next
    }
  }

  return {
    changes: (query = {}, call = {}) => follow(query, call),
    listChanges,
    invoices: {
      list: async (customerId, query = {}, call = {}) => poll(listPath(customerId, query), call),
      // A walk is not remembered: it would push out what is polled.
      all: (customerId, filters = {}, call = {}) =>
        walkInvoices(page => {
          const path = listPath(customerId, { ...filters, page, page_size: maxPageSize })
          return read<InvoiceList>(path, call, undefined)
        }),
    },
    invoice: {
      get: async (customerId, invoiceId, call = {}) => poll(invoicePath(customerId, invoiceId), call),
    },
    document: {
      get: async (customerId, invoiceId, call = {}) =>
        poll(`${invoicePath(customerId, invoiceId)}/document`, call),
      qr: (customerId, invoiceId, call = {}) =>
        send(
          `${invoicePath(customerId, invoiceId)}/document/qr`,
          { accept: 'image/png' },
          call,
          async answer => new Blob([await answer.arrayBuffer()], { type: 'image/png' }),
        ),
    },
    summary: async (customerId, call = {}) => poll(`${customerPath(customerId)}/summary`, call),
    paymentPage: (customerId, invoiceId, call = {}) =>
      ask(`${invoicePath(customerId, invoiceId)}/payments/page`, call),
    downloadPdf: (customerId, invoiceId, kind, call = {}) => {
      const path = `${invoicePath(customerId, invoiceId)}/${kind}/download`
      return send(path, { accept: 'application/pdf' }, call, async ({ headers, body }) => ({
        fileName: readFileName(headers.get('content-disposition')) ?? `${invoiceId}.pdf`,
        size: Number(headers.get('content-length')) || null,
        body: body as ReadableStream<Uint8Array>,
        requestId: headers.get('request-id'),
      }))
    },
  }
}

const freeze = (_key: string, value: unknown) => Object.freeze(value)

const customerPath = (customerId: string) => `/api/v1/client/${encodeURIComponent(customerId)}`

const invoicePath = (customerId: string, invoiceId: string) =>
  `${customerPath(customerId)}/invoice/${encodeURIComponent(invoiceId)}`

/** Refuses parameters that the service would ignore or lower, so that a part is never taken for the whole. */
function listPath(customerId: string, query: ListQuery): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (!listParameters.includes(name))
      throw new TypeError(`${name} is no filter; there are ${listParameters.join(', ')}.`)
    if (value !== undefined && value !== '') given.set(name, String(value))
  }
  const { page_size: size = 1 } = query
  if (!(size >= 1 && size <= maxPageSize))
    throw new RangeError(`page_size must be 1 to ${maxPageSize}; invoices.all gives all of them.`)
  return `${customerPath(customerId)}/invoices${given.size > 0 ? `?${given}` : ''}`
}

/** RFC 6266: the extended name is the true one where there is one. */
function readFileName(disposition: string | null): string | undefined {
  const extended = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? '')?.[1]
  return extended ? decodeURIComponent(extended) : /filename="([^"]+)"/i.exec(disposition ?? '')?.[1]
}
