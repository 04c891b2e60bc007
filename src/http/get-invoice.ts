import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { TakeTurn, TurnLimits } from '../access/fair-turns.ts'
import { ApiError } from '../errors.ts'
import { serializeDetail, serializeLines } from '../invoice-json.ts'
import type { PaymentPlatform } from '../sources.ts'
import type { ReadStore, StoredInvoice } from '../store/store.ts'
import { readTrace, withTrace } from '../trace.ts'
import { isHeldByClient, setReadHeaders } from './conditional.ts'
import { getInvoiceSchema, type InvoiceParams } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'
import { createUpstreamTurns } from './upstream-turns.ts'

/** How long a client waits for lines that are not stored; after that the invoice is answered without them. */
const linesDeadline = 800

const limits: Omit<TurnLimits, 'inAllSecond'> = {
  perMember: 8,
  perMemberSecond: 10,
  perGroup: 32,
  inAll: 64,
  waitingPerGroup: 500,
  waitMs: linesDeadline,
}

export interface InvoiceSources {
  store: ReadStore
  payments: PaymentPlatform | null
  log: Logger
}

export function addGetInvoice(app: TypedApp, { store, payments, log }: InvoiceSources): void {
  const takeTurn = createUpstreamTurns({
    ...limits,
    inAllSecond: payments?.perSecond ?? Number.POSITIVE_INFINITY,
  })
  app.get('/invoice/:invoiceId', { schema: getInvoiceSchema }, async (request, reply) => {
    const stored = await findInvoice(store, request.params)
    const lines =
      stored.lines ??
      (payments &&
        (await withTrace(readTrace(request.headers.traceparent), () =>
          fetchLines(payments, takeTurn, request, log),
        )))
    const body = serializeDetail(stored.summary, lines)
    const etag = `"${hash('sha1', body, 'base64url')}"`
    setReadHeaders(reply, etag, stored.synced_at)
    if (isHeldByClient(request, etag)) return reply.code(304).send()
    return sendJson(reply, body)
  })
}

/** Throws `invoice_not_found`, whether the invoice does not exist or is another customer's. */
export async function findInvoice(store: ReadStore, params: InvoiceParams): Promise<StoredInvoice> {
  const stored = await store.findInvoice(params.customerId, params.invoiceId)
  if (stored === null) throw new ApiError('invoice_not_found', 'This customer has no such invoice.')
  return stored
}

/** The lines' JSON text, or null when the platform has none to give in time: the invoice is answered either way. */
async function fetchLines(
  payments: PaymentPlatform,
  takeTurn: TakeTurn,
  { id, grant, params }: Pick<FastifyRequest, 'id' | 'grant'> & { params: InvoiceParams },
  log: Logger,
): Promise<string | null> {
  const deadline = AbortSignal.timeout(linesDeadline)
  try {
    const refusal = payments.refusal?.() ?? null
    if (refusal !== null) throw refusal
    const endTurn = await takeTurn(grant?.token_id ?? '', params.customerId, deadline)
    const fetching = payments.fetchLines(params.invoiceId, deadline).finally(endTurn)
    const lines = await Promise.race([fetching, rejectOnAbort(deadline)])
    return lines && serializeLines(lines)
  } catch (error) {
    log.warn({ request_id: id, invoice_id: params.invoiceId, err: error }, 'lines unavailable')
    return null
  }
}

/** For a source that does not heed its signal. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}
