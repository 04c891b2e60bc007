import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import type { InvoiceDocument } from '../invoice.ts'
import { isHeldByClient, setReadHeaders } from './conditional.ts'
import { createFileSender, type DocumentSources, documentNotFound, notConnected } from './download.ts'
import { findInvoice } from './get-invoice.ts'
import { getDocumentSchema, type InvoiceRoute, qrSchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'

export function addGetDocument(app: FastifyInstance, { store, documents, log }: DocumentSources): void {
  app.get<InvoiceRoute>(
    '/invoice/:invoiceId/document',
    { schema: getDocumentSchema },
    async (request, reply) => {
      const { document, synced_at } = await findInvoice(store, request.params)
      if (document === null) throw documentNotFound()
      const etag = `"${hash('sha1', document, 'base64url')}"`
      setReadHeaders(reply, etag, synced_at)
      if (isHeldByClient(request, etag)) return reply.code(304).send()
      return sendJson(reply, document)
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
    return sendFile(request, reply, {
      open: signal => open(id, signal),
      headers: { 'content-type': 'image/png' },
    })
  })
}
