import type { FastifyInstance } from 'fastify'
import { describeOpenInvoice, sumBalances } from '../balance.ts'
import { dayOf } from '../calendar.ts'
import { serializeBalance } from '../invoice-json.ts'
import type { OpenInvoices } from '../store/store.ts'
import { sendOfCustomer } from './conditional.ts'
import type { Sources } from './get-invoice.ts'
import { type CustomerParams, getBalanceSchema } from './openapi/schemas.ts'

/** `pay`: whether the payment platform's page is named. */
export function addGetBalance(
  app: FastifyInstance,
  { store, payments, pay }: Sources & { pay: boolean },
): void {
  const hasPage = pay && payments !== null
  app.get<{ Params: CustomerParams }>('/balance', { schema: getBalanceSchema }, (request, reply) => {
    const day = dayOf(Date.now())
    const read = (customerId: string) => store.readOpen(customerId, day)
    // The answer follows the calendar, too, and whether there is a page to pay on.
    const variant = `${day}${hasPage ? '-page' : ''}`
    return sendOfCustomer(request, reply, store, read, found => writeBalance(found, day, hasPage), variant)
  })
}

function writeBalance({ sums, invoices }: OpenInvoices, day: string, hasPage: boolean): string {
  const shown = invoices.map(texts => {
    const [invoice, facts] = [JSON.parse(texts.summary), JSON.parse(texts.payment)]
    const document = texts.document === null ? null : JSON.parse(texts.document)
    return describeOpenInvoice(invoice, facts, document, { day, hasPage })
  })
  const more = sums.reduce((all, { count }) => all + count, 0) - shown.length
  return serializeBalance({ day, invoices: shown, more }, sumBalances(sums, day))
}
