import type { FastifyInstance } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { expandLines } from '../domain/expansion.ts'
import { serializePage, serializeSums } from '../domain/invoice-json.ts'
import { clampPage, clampPageSize, type ListQuery } from '../domain/list-query.ts'
import type { InvoicePage, InvoiceQuery, ReadStore } from '../store/store.ts'
import { createFairQueue } from './access/fair-queue.ts'
import { sendOfCustomer } from './conditional.ts'
import { momentOf, variantOf } from './expand.ts'
import type { Sources } from './get-invoice.ts'
import { type CustomerParams, getSummarySchema, listInvoicesSchema } from './openapi/schemas.ts'
import { readFilter } from './read-filter.ts'

/** Maximum of searches of one token that run at once. Counts only searches that cost much more than a page. */
const maxSearches = 2

/** A third search waits, so that a page may search at every keystroke without knowing the limit. */
const searchLimits = { perGroup: maxSearches, waitingPerGroup: 50, waitMs: 1_000 }

interface ListRoute {
  Params: CustomerParams
  Querystring: ListQuery
}

export function addListInvoices(app: FastifyInstance, { store, ...page }: Sources & { pay: boolean }): void {
  const takeSlot = createFairQueue(searchLimits, refuseSearch)
  app.get<ListRoute>('/invoices', { schema: listInvoicesSchema }, async (request, reply) => {
    const query: InvoiceQuery = {
      customer_id: request.params.customerId,
      page: clampPage(request.query.page),
      page_size: clampPageSize(request.query.page_size),
      expand: request.query.expand,
      ...readFilter(request.query),
    }
    const read = () =>
      store.listInvoices(query, search => runInSlot(search, request.grant?.token_id ?? '', reply.raw))
    const { expand = [] } = query
    if (expand.length === 0)
      return sendOfCustomer(request, reply, store, read, found => serializePage(found, query.page_size))
    const moment = momentOf(page)
    const write = (found: InvoicePage) => {
      const summaries = expandLines(found.summaries, expand, moment)
      return serializePage({ ...found, summaries }, query.page_size)
    }
    const variant = expand.includes('payment') ? variantOf(moment) : ''
    return sendOfCustomer(request, reply, store, read, write, variant)
  })

  async function runInSlot(
    search: () => Promise<InvoicePage>,
    tokenId: string,
    client: { destroyed: boolean },
  ): Promise<InvoicePage> {
    const freeSlot = await takeSlot(tokenId, '')
    try {
      if (client.destroyed) throw new ApiError('unavailable', 'The client went away before its turn came.')
      return await search()
    } finally {
      freeSlot()
    }
  }
}

export function addGetSummary(app: FastifyInstance, store: ReadStore): void {
  const read = (customerId: string) => store.readSums(customerId)
  app.get<{ Params: CustomerParams }>('/summary', { schema: getSummarySchema }, (request, reply) =>
    sendOfCustomer(request, reply, store, read, ({ sums, credited, open }) =>
      serializeSums(sums, credited, open),
    ),
  )
}

function refuseSearch(): ApiError {
  const message = `This token already runs ${maxSearches} searches, and too many others wait.`
  return new ApiError('rate_limited', message, { retryAfter: 1 })
}
