import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import type { InvoiceDocument } from '../invoice.ts'
import { sendTagged } from './conditional.ts'
import { createFileSender, documentNotFound, notConnected } from './download.ts'
import { findInvoice, type Sources } from './get-invoice.ts'
import { documentSchema, type InvoiceRoute, qrSchema } from './openapi/schemas.ts'

export function addGetDocument(app: FastifyInstance, { store, documents, log }: Sources): void {
  app.get<InvoiceRoute>(
    '/invoice/:invoiceId/document',
    { schema: documentSchema },
    async (request, reply) => {
      const { document, synced_at } = await findInvoice(store, request.params)
      if (document === null) throw documentNotFound()
      return sendTagged(request, reply, document, synced_at)
    },
  )

  const sendFile = createFileSender(documents, log)
  app.get<InvoiceRoute>('/invoice/:invoiceId/document/qr', { schema: qrSchema }, async (request, reply) => {
    const { document } = await findInvoice(store, request.params)
    if (document === null) throw documentNotFound()
    const { id, qr_path }: InvoiceDocument = JSON.parse(document)
    if (qr_path === null) throw new ApiError('document_not_found', 'The external document has no QR code.')
    if (documents?.openQr === undefined) throw notConnected('The external invoicing system is not connected.')
    const open = documents.openQr.bind(documents)
    return sendFile(request, reply, { 'content-type': 'image/png' }, signal => open(id, signal))
  })
}
