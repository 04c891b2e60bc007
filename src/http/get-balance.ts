import type { FastifyInstance } from 'fastify'
import { describeOpenInvoice, sumBalances } from '../domain/balance.ts'
import type { PaymentMoment } from '../domain/expansion.ts'
import { serializeBalance } from '../domain/invoice-json.ts'
import type { OpenInvoices } from '../store/store.ts'
import { sendOfCustomer } from './conditional.ts'
import { momentOf, variantOf } from './expand.ts'
import type { Sources } from './get-invoice.ts'
import { type CustomerParams, getBalanceSchema } from './openapi/schemas.ts'

export function addGetBalance(app: FastifyInstance, { store, ...page }: Sources & { pay: boolean }): void {
  app.get<{ Params: CustomerParams }>('/balance', { schema: getBalanceSchema }, (request, reply) => {
    const moment = momentOf(page)
    const read = (customerId: string) => store.readOpen(customerId, moment.day)
    // The answer also depends on the day, and on whether there is a page to pay on.
    const write = (found: OpenInvoices) => writeBalance(found, moment)
    return sendOfCustomer(request, reply, store, read, write, variantOf(moment))
  })
}

function writeBalance({ sums, invoices }: OpenInvoices, moment: PaymentMoment): string {
  const shown = invoices.map(texts => {
    const [invoice, facts] = [JSON.parse(texts.summary), JSON.parse(texts.payment)]
    const document = texts.document === null ? null : JSON.parse(texts.document)
    return describeOpenInvoice(invoice, facts, document, moment)
  })
  const more = sums.reduce((all, { count }) => all + count, 0) - shown.length
  return serializeBalance({ day: moment.day, invoices: shown, more }, sumBalances(sums, moment.day))
}
