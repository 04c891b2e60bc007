import manifest from '../../package.json' with { type: 'json' }
import { dayMs } from '../calendar.ts'
import { ApiError } from '../errors.ts'
import { clampPage, clampPageSize } from '../invoice.ts'
import { serializePage } from '../invoice-json.ts'
import { maxSearchWords, type SearchWord, searchWords } from '../store/read-model/search.ts'
import type { InvoiceQuery, ReadStore, Snapshot, WholeFilter } from '../store/store.ts'
import { isHeldByClient, setReadHeaders } from './conditional.ts'
import { limitExpensive } from './expensive.ts'
import { type CustomerParams, type ListQuery, listInvoicesSchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'

export function addListInvoices(app: TypedApp, store: ReadStore): void {
  const runExpensive = limitExpensive()
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
    const page = await (query.words === undefined ? list() : runExpensive(request, reply, list))
    setReadHeaders(reply, etagOf(query.customer_id, page), page.synced_at)
    return sendJson(reply, serializePage(page, query.page_size))
  })
}

/**
 * Any change of the customer's invoices changes it, so it can be answered without reading one of them. Customers whose
 * invoices were written together have the same version, so the customer is named as well.
 */
function etagOf(customerId: string, { version }: Snapshot): string {
  return `"${manifest.version}-${version}-${customerId}"`
}

function readQuery({ customerId }: CustomerParams, query: ListQuery): InvoiceQuery {
  const { status, ix_status, date_from, date_to } = query
  const q = query.q?.trim()
  const filter: WholeFilter = {
    status,
    ix_status,
    issued_from: date_from === undefined ? undefined : Date.parse(date_from),
    issued_before: date_to === undefined ? undefined : Date.parse(date_to) + dayMs,
    words: q ? readWords(q) : undefined,
  }
  return {
    customer_id: customerId,
    page: clampPage(query.page),
    page_size: clampPageSize(query.page_size),
    ...filter,
  }
}

function readWords(q: string): SearchWord[] {
  const words = searchWords(q)
  if (words.length > maxSearchWords)
    throw new ApiError(
      'invalid_parameter',
      `q must have at most ${maxSearchWords} different words, and has ${words.length}; a word that is part of another does not count.`,
      { param: 'q' },
    )
  return words
}
