import type { FastifyInstance } from 'fastify'
import { clampPage, clampPageSize, type ListQuery } from '../invoice.ts'
import { serializePage } from '../invoice-json.ts'
import type { InvoiceQuery, ReadStore } from '../store/store.ts'
import { customerEtag, isCustomerHeld, setReadHeaders } from './conditional.ts'
import { limitSearches } from './limit-searches.ts'
import { type CustomerParams, listInvoicesSchema } from './openapi/schemas.ts'
import { readFilter } from './read-filter.ts'
import { sendJson } from './send-json.ts'

export function addListInvoices(app: FastifyInstance, store: ReadStore): void {
  const runSearch = limitSearches()
  app.get<{ Params: CustomerParams; Querystring: ListQuery }>(
    '/invoices',
    { schema: listInvoicesSchema },
    async (request, reply) => {
      const query = readQuery(request.params, request.query)
      if (await isCustomerHeld(request, reply, store, query.customer_id)) return reply.send()
      const list = () => store.listInvoices(query)
      const page = await (query.words === undefined ? list() : runSearch(request, reply, list))
      setReadHeaders(reply, customerEtag(query.customer_id, page), page.synced_at)
      return sendJson(reply, serializePage(page, query.page_size))
    },
  )
}

function readQuery({ customerId }: CustomerParams, query: ListQuery): InvoiceQuery {
  return {
    customer_id: customerId,
    page: clampPage(query.page),
    page_size: clampPageSize(query.page_size),
    ...readFilter(query),
  }
}
