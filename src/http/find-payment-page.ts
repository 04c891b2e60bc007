import type { FastifyInstance } from 'fastify'
import { isPayable } from '../domain/balance.ts'
import { ApiError } from '../domain/errors.ts'
import type { Invoice } from '../domain/invoice.ts'
import { createSourceCall, notConnected } from './download.ts'
import { findInvoice, type Sources } from './get-invoice.ts'
import { type InvoiceRoute, paymentPageSchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'

const what = 'payment page'

/**
 * The platform is asked at each request. The page's URL holds a secret and expires, so it is never stored or logged.
 */
export function addFindPaymentPage(app: FastifyInstance, { store, payments }: Sources): void {
  const callSource = createSourceCall(payments, what)
  app.get<InvoiceRoute>(
    '/invoice/:invoiceId/payments/page',
    { schema: paymentPageSchema },
    async (request, reply) => {
      const stored = await findInvoice(store, request.params)
      const invoice: Invoice = JSON.parse(stored.summary)
      const document = stored.document === null ? null : JSON.parse(stored.document)
      if (!isPayable(invoice, JSON.parse(stored.payment), document)) throw notPayable()
      if (payments === null) throw notConnected('The payment platform is not connected.', what)
      const { result: url } = await callSource(request, reply, (signal, freeSlot) =>
        payments.findPaymentPage(invoice.id, signal).finally(freeSlot),
      )
      if (url === null) throw notPayable()
      reply.header('cache-control', 'private, no-store')
      return sendJson(reply, JSON.stringify({ url }))
    },
  )
}

function notPayable(): ApiError {
  return new ApiError('not_payable', 'Only an open invoice of which something is left to pay can be paid.')
}
