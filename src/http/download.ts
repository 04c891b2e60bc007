import { ApiError } from '../errors.ts'
import type { DocumentKind, Invoice } from '../invoice.ts'
import { type InvoicingSystem, type PaymentPlatform, type Pdf, SourceError } from '../sources.ts'
import type { ReadStore } from '../store/store.ts'
import { contentDisposition } from './content-disposition.ts'
import { findInvoice } from './get-invoice.ts'
import { downloadSchemas } from './schemas.ts'
import type { TypedApp } from './typed-app.ts'

/** A whole download, from the first question to the last byte. */
const downloadDeadline = 30_000

export interface DocumentSources {
  store: ReadStore
  payments: PaymentPlatform | null
  documents: InvoicingSystem | null
}

export function addDownload(app: TypedApp, kind: DocumentKind, sources: DocumentSources): void {
  app.get(
    `/invoice/:invoiceId/${kind}/download`,
    { schema: downloadSchemas[kind] },
    async (request, reply) => {
      const stored = await findInvoice(sources.store, request.params)
      const invoice: Invoice = JSON.parse(stored.summary)
      const gone = new AbortController()
      reply.raw.once('close', () => gone.abort())
      const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(downloadDeadline)])
      const pdf = await openPdf(kind, invoice, sources, signal).catch(refuse)
      if (pdf.size !== null) reply.header('content-length', pdf.size)
      return reply
        .header('content-type', 'application/pdf')
        .header('content-disposition', contentDisposition(invoice.number ?? invoice.id))
        .header('cache-control', 'private, no-store')
        .send(pdf.body)
    },
  )
}

async function openPdf(
  kind: DocumentKind,
  invoice: Invoice,
  { payments, documents }: DocumentSources,
  signal: AbortSignal,
): Promise<Pdf> {
  if (kind === 'payments') {
    if (invoice.status === 'draft') throw notIssued('The invoice is a draft: it has no PDF yet.')
    if (payments === null) throw new SourceError('failed', 'The payment platform is not connected.')
    return payments.openPdf(invoice.id, signal)
  }
  if (invoice.ix_id === null)
    throw new ApiError('document_not_found', 'No external document is associated with this invoice.')
  if (invoice.ix_status === 'draft') throw notIssued('The external document is a draft: it has no PDF yet.')
  if (documents === null) throw new SourceError('failed', 'The external invoicing system is not connected.')
  return documents.openPdf(invoice.ix_id, signal)
}

function notIssued(message: string): ApiError {
  return new ApiError('document_not_issued', message)
}

/** What a source failed with, in the API's words; the source's own words go to the log alone. */
function refuse(error: unknown): never {
  if (!(error instanceof SourceError)) throw error
  switch (error.failure) {
    case 'missing':
      throw new ApiError('document_not_found', 'The system that held this document no longer has it.', {
        cause: error,
      })
    case 'not_ready':
      throw new ApiError('document_not_ready', 'The PDF is being made; try again shortly.', {
        retryAfter: error.retryAfter ?? 5,
      })
    case 'timeout':
      throw new ApiError('upstream_timeout', 'The system that holds this document did not answer in time.', {
        cause: error,
      })
    case 'failed':
      throw new ApiError('upstream_failed', 'The system that holds this document could not deliver it.', {
        cause: error,
      })
  }
}
