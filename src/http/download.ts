import { once } from 'node:events'
import { addAbortSignal, finished, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../domain/errors.ts'
import { type DocumentKind, findNoPdf, type Invoice, type InvoiceDocument } from '../domain/invoice.ts'
import { readTrace, withTrace } from '../sources/calls/trace.ts'
import { safeFileName } from '../sources/pdf/file-name.ts'
import { type InvoicingSystem, type PaymentPlatform, type Pdf, SourceError } from '../sources/source.ts'
import { documentNotFound, findInvoice, type Sources } from './get-invoice.ts'
import {
  downloadSchemas,
  type InvoiceParams,
  type InvoiceRoute,
  qrSchema,
  type RelatedRoute,
  relatedPdfSchema,
} from './openapi/schemas.ts'
import { createUpstreamQueue, orAborted } from './upstream-queue.ts'

/** Deadline of a whole download, from the first request to the last byte. */
const downloadDeadlineMs = 30_000

/** These limits apply to each queue, see `createSourceCall`. */
const limits = { perMember: 4, perMemberSecond: 5, perGroup: 16, waitMs: 10_000 }

type Source = PaymentPlatform | InvoicingSystem | null

/**
 * Returns a function with a fair queue of its own. It asks a source for a document in a slot of the queue. `ask` must
 * free the slot. The source's failure becomes an error of the API. `signal` aborts when the client leaves or the
 * deadline passes.
 */
export function createSourceCall(source: Source, what = 'document') {
  const takeSlot = createUpstreamQueue(source, limits)
  return async <Result>(
    request: SourceRequest,
    reply: FastifyReply,
    ask: (signal: AbortSignal, freeSlot: () => void) => Promise<Result>,
  ): Promise<{ result: Result; signal: AbortSignal }> => {
    const refusal = source?.refusal?.() ?? null
    if (refusal !== null) throw explain(refusal, what)
    const transfer = new AbortController()
    const { signal } = transfer
    const leave = () => transfer.abort(new ClientGone())
    if (reply.raw.destroyed) leave()
    else reply.raw.once('close', leave)
    const freeSlot = await takeSlot(request.grant?.token_id ?? '', request.params.customerId, signal)
    const overdue = () => transfer.abort(new SourceError('timeout', 'The transfer took too long.'))
    // If the client is already gone, nothing clears this timer. So the timer must not keep the process alive.
    const clock = setTimeout(overdue, downloadDeadlineMs).unref()
    reply.raw.once('close', () => clearTimeout(clock))
    const asking = withTrace(readTrace(request.headers.traceparent), () => ask(signal, freeSlot))
    const result = await orAborted(asking, signal).catch(error => {
      throw explain(signal.aborted ? signal.reason : error, what)
    })
    return { result, signal }
  }
}

/**
 * A failure before the first byte becomes an error answer. A later failure breaks the connection, so that an
 * incomplete file never looks complete.
 */
function createFileSender(callSource: SourceCall, log: Logger) {
  return async (
    request: SourceRequest,
    reply: FastifyReply,
    headers: Record<string, string>,
    open: (signal: AbortSignal) => Promise<Pdf>,
  ) => {
    const { result, signal } = await callSource(request, reply, (signal, freeSlot) => {
      const opening = open(signal).then(pdf => awaitFirstBytes(pdf, signal))
      // The slot stays taken while the upstream works, even when the client is gone.
      opening.then(({ body }) => finished(body, freeSlot), freeSlot)
      return opening
    })
    const { body, size } = result
    if (size !== null) reply.header('content-length', size)
    reply.headers(headers).header('cache-control', 'private, no-store')
    // Fastify answers HEAD without the body, but would still read the body to its end.
    if (request.method === 'HEAD') body.destroy()
    else
      finished(body, error => {
        if (error && !(signal.reason instanceof ClientGone))
          log.warn({ request_id: request.id, err: signal.reason ?? error }, 'download stopped before its end')
      })
    return reply.send(body)
  }
}

export type SourceCall = ReturnType<typeof createSourceCall>

/**
 * The systems that routes read from, and the queued call to one of them. Routes with the same `callSource` share its
 * queue.
 */
interface FileSources extends Sources {
  callSource: SourceCall
}

type SourceRequest = Pick<FastifyRequest, 'id' | 'grant' | 'headers' | 'method'> & { params: InvoiceParams }

export function addDownload(app: FastifyInstance, kind: DocumentKind, sources: FileSources): void {
  const sendFile = createFileSender(sources.callSource, sources.log)
  app.get<InvoiceRoute>(
    `/invoice/:invoiceId/${kind}/download`,
    { schema: downloadSchemas[kind] },
    async (request, reply) => {
      const stored = await findInvoice(sources.store, request.params)
      const invoice: Invoice = JSON.parse(stored.summary)
      const open = findPdf(kind, invoice, sources)
      const document: InvoiceDocument | null = kind === 'ix' && stored.document && JSON.parse(stored.document)
      const name = document?.number ?? invoice.number ?? invoice.id
      return sendFile(request, reply, pdfHeaders(name, invoice.id), open)
    },
  )
}

/** Serves PDFs of the credit notes, debit notes and receipts that belong to an invoice's certified document. */
export function addDownloadRelated(app: FastifyInstance, sources: FileSources): void {
  const { store, documents, log, callSource } = sources
  const sendFile = createFileSender(callSource, log)
  app.get<RelatedRoute>(
    '/invoice/:invoiceId/related/:documentId/download',
    { schema: relatedPdfSchema },
    async (request, reply) => {
      const { invoiceId, documentId } = request.params
      const { document } = await findInvoice(store, request.params)
      const related: InvoiceDocument['related'] = document === null ? null : JSON.parse(document).related
      const about = related?.find(({ id }) => String(id) === documentId)
      if (about === undefined) throw documentNotFound()
      if (about.status === 'draft') throw notIssued(draftMessage)
      if (documents === null) throw notConnected(noInvoicing)
      const headers = pdfHeaders(about.number ?? documentId, invoiceId)
      return sendFile(request, reply, headers, signal => documents.openPdf(about.id, signal))
    },
  )
}

function pdfHeaders(name: string, invoiceId: string): Record<string, string> {
  return {
    'content-type': 'application/pdf',
    'content-disposition': contentDisposition(name, invoiceId),
  }
}

export function addGetQr(app: FastifyInstance, { store, documents, log, callSource }: FileSources): void {
  const sendFile = createFileSender(callSource, log)
  app.get<InvoiceRoute>('/invoice/:invoiceId/document/qr', { schema: qrSchema }, async (request, reply) => {
    const { document } = await findInvoice(store, request.params)
    if (document === null) throw documentNotFound()
    const { id, qr_path }: InvoiceDocument = JSON.parse(document)
    if (qr_path === null) throw new ApiError('document_not_found', 'The external document has no QR code.')
    if (documents?.openQr === undefined) throw notConnected(noInvoicing)
    const open = documents.openQr.bind(documents)
    return sendFile(request, reply, { 'content-type': 'image/png' }, signal => open(id, signal))
  })
}

class ClientGone extends ApiError {
  constructor() {
    super('upstream_failed', 'The client went away before the document came.')
  }
}

/** Most file systems take 255 bytes, and a browser may add to the name, for example "(1)". */
const maxNameBytes = 200

/** Number of characters of an id that distinguish invoices with the same number. */
const idTail = 8

/**
 * The header that names a download after an invoice's number (RFC 6266): plain ASCII for all clients, and the true
 * name where it differs. The end of the id keeps two invoices with the same number from overwriting each other.
 */
function contentDisposition(number: string, id: string): string {
  const ending = ` ${safeFileName(id.slice(-idTail), idTail * 4) || 'x'}.pdf`
  const name = (safeFileName(number, maxNameBytes - Buffer.byteLength(ending)) || 'invoice') + ending
  const ascii = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 8187: also encodes the characters that encodeURIComponent leaves but `filename*` may not hold. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/**
 * Waits for the first bytes of a PDF. The body is destroyed when `signal` aborts, even if it aborted before the body
 * came.
 */
async function awaitFirstBytes(pdf: Pdf, signal: AbortSignal) {
  const body = addAbortSignal(signal, pdf.body as Readable)
  if (body.readableLength === 0) await once(body, 'readable')
  return { body, size: pdf.size }
}

/** Returns a function that opens the PDF. Throws when there is no PDF. */
function findPdf(kind: DocumentKind, invoice: Invoice, { payments, documents }: Sources) {
  const { id, ix_id } = invoice
  const missing = findNoPdf(kind, invoice)
  if (kind === 'payments') {
    if (missing !== null) throw notIssued('The invoice is a draft: it has no PDF yet.')
    if (payments === null) throw notConnected('The payment platform is not connected.')
    return (signal: AbortSignal) => payments.openPdf(id, signal)
  }
  if (ix_id === null) throw documentNotFound()
  if (missing !== null) throw notIssued(draftMessage)
  if (documents === null) throw notConnected(noInvoicing)
  return (signal: AbortSignal) => documents.openPdf(ix_id, signal)
}

const draftMessage = 'The external document is a draft: it has no PDF yet.'
const noInvoicing = 'The external invoicing system is not connected.'

function notIssued(message: string): ApiError {
  return new ApiError('document_not_issued', message)
}

export function notConnected(message: string, what?: string): Error {
  return explain(new SourceError('failed', message), what)
}

const defaultRetryAfterSeconds = 5

/** Translates a source's failure into an error of the API. The source's own message goes to the log alone. */
function explain(error: Error, what = 'document'): Error {
  if (!(error instanceof SourceError)) return error
  const { failure, retryAfter = defaultRetryAfterSeconds } = error
  const [cause, holder] = [error, `The system that holds this ${what}`]
  switch (failure) {
    case 'missing':
      return new ApiError('document_not_found', 'The system that held this document no longer has it.', {
        cause,
      })
    case 'not_ready':
      return new ApiError('document_not_ready', 'The PDF is being made; try again shortly.', { retryAfter })
    case 'timeout':
      return new ApiError('upstream_timeout', `${holder} did not answer in time.`, { cause, retryAfter })
    case 'failed': {
      const retry = error.retryAfter === undefined ? {} : { retryAfter }
      return new ApiError('upstream_failed', `${holder} could not deliver it.`, { cause, ...retry })
    }
  }
}
