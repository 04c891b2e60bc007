import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../domain/errors.ts'
import type { Expansion } from '../domain/expanded.ts'
import { expandOne } from '../domain/expansion.ts'
import { serializeDetail, serializeLines } from '../domain/invoice-json.ts'
import { readTrace, withTrace } from '../sources/calls/trace.ts'
import type { InvoicingSystem, PaymentPlatform } from '../sources/source.ts'
import type { ReadStore, StoredInvoice } from '../store/store.ts'
import type { TakeSlot } from './access/fair-queue.ts'
import { sendTagged } from './conditional.ts'
import { momentOf, type PageKnowledge } from './expand.ts'
import { documentSchema, getInvoiceSchema, type InvoiceParams, type InvoiceRoute } from './openapi/schemas.ts'
import { createUpstreamQueue, orAborted } from './upstream-queue.ts'

interface DetailRoute extends InvoiceRoute {
  Querystring: { expand?: readonly Expansion[] }
}

/** Deadline for fetching lines that are not stored. After it, the invoice is sent without lines. */
const linesDeadlineMs = 800

const limits = { perMember: 8, perMemberSecond: 10, perGroup: 32, waitMs: linesDeadlineMs }

/** The store and the systems that routes read from. A system that is not connected is null. */
export interface Sources {
  store: ReadStore
  payments: PaymentPlatform | null
  documents: InvoicingSystem | null
  log: Logger
}

export function addGetInvoice(
  app: FastifyInstance,
  { store, log, ...page }: Sources & { pay: boolean },
): void {
  const { payments } = page
  const takeSlot = createUpstreamQueue(payments, limits)
  app.get<DetailRoute>('/invoice/:invoiceId', { schema: getInvoiceSchema }, async (request, reply) => {
    const stored = await findInvoice(store, request.params)
    const lines =
      stored.lines ??
      (payments &&
        (await withTrace(readTrace(request.headers.traceparent), () =>
          fetchLines(payments, takeSlot, request, log),
        )))
    const { expand = [] } = request.query
    const body = serializeDetail(stored.summary, lines, expansionsOf(stored, expand, page))
    return sendTagged(request, reply, body, stored.synced_at)
  })

  const documentPath = '/invoice/:invoiceId/document'
  app.get<InvoiceRoute>(documentPath, { schema: documentSchema }, async (request, reply) => {
    const { document, synced_at } = await findInvoice(store, request.params)
    if (document === null) throw documentNotFound()
    return sendTagged(request, reply, document, synced_at)
  })
}

/** Returns the members that `expand` adds, as JSON text. Lists contain the same text for an invoice. */
function expansionsOf(stored: StoredInvoice, expand: readonly Expansion[], page: PageKnowledge): string {
  if (expand.length === 0) return ''
  const { summary, payment, document } = stored
  const records = [JSON.parse(summary), JSON.parse(payment), document && JSON.parse(document)] as const
  return expandOne(expand, momentOf(page), ...records)
}

export function documentNotFound(): ApiError {
  return new ApiError('document_not_found', 'No external document is associated with this invoice.')
}

/** Throws `invoice_not_found` when the invoice does not exist, and also when it belongs to another customer. */
export async function findInvoice(store: ReadStore, params: InvoiceParams): Promise<StoredInvoice> {
  const stored = await store.findInvoice(params.customerId, params.invoiceId)
  if (stored === null) throw new ApiError('invoice_not_found', 'This customer has no such invoice.')
  return stored
}

/** Returns the lines as JSON text. Null when they cannot be fetched in time. */
async function fetchLines(
  payments: PaymentPlatform,
  takeSlot: TakeSlot,
  { id, grant, params }: Pick<FastifyRequest, 'id' | 'grant'> & { params: InvoiceParams },
  log: Logger,
): Promise<string | null> {
  const deadline = AbortSignal.timeout(linesDeadlineMs)
  try {
    const refusal = payments.refusal?.() ?? null
    if (refusal !== null) throw refusal
    const freeSlot = await takeSlot(grant?.token_id ?? '', params.customerId, deadline)
    const lines = await orAborted(payments.fetchLines(params.invoiceId, deadline).finally(freeSlot), deadline)
    return lines && serializeLines(lines)
  } catch (error) {
    log.warn({ request_id: id, invoice_id: params.invoiceId, err: error }, 'line items unavailable')
    return null
  }
}
