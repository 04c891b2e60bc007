import { clampPage, clampPageSize, type ListQuery } from '../invoice.ts'
import { serializePage } from '../invoice-json.ts'
import { version as packageVersion } from '../package.ts'
import type { InvoiceQuery, ReadStore, Snapshot } from '../store/store.ts'
import { isHeldByClient, setReadHeaders } from './conditional.ts'
import { limitSearches } from './limit-searches.ts'
import { type CustomerParams, listInvoicesSchema } from './openapi/schemas.ts'
import { readFilter } from './read-filter.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'

export function addListInvoices(app: TypedApp, store: ReadStore): void {
  const runSearch = limitSearches()
  app.get('/invoices', { schema: listInvoicesSchema }, async (request, reply) => {
    const query = readQuery(request.params, request.query)
    if (request.headers['if-none-match'] !== undefined) {
      const snapshot = await store.readSnapshot(query.customer_id)
      const etag = etagOf(query.customer_id, snapshot)
      if (isHeldByClient(request, etag)) {
        setReadHeaders(reply, etag, snapshot.synced_at)
        return reply.code(304).send()
      }
    }
    const list = () => store.listInvoices(query)
    const page = await (query.words === undefined ? list() : runSearch(request, reply, list))
    setReadHeaders(reply, etagOf(query.customer_id, page), page.synced_at)
    return sendJson(reply, serializePage(page, query.page_size))
  })
}

/**
 * Any change of the customer's invoices changes it, so it can be answered without reading one of them. Customers whose
 * invoices were written together have the same version, so the customer is named as well.
 */
function etagOf(customerId: string, { version }: Snapshot): string {
  return `"${packageVersion}-${version}-${customerId}"`
}

function readQuery({ customerId }: CustomerParams, query: ListQuery): InvoiceQuery {
  return {
    customer_id: customerId,
    page: clampPage(query.page),
    page_size: clampPageSize(query.page_size),
    ...readFilter(query),
  }
}
