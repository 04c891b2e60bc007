import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { isCustomerId, isInvoiceId } from '../domain/invoice.ts'
import { requestEnded, requestShed } from '../sources/calls/telemetry.ts'
import { readTrace, traceIdOf } from '../sources/calls/trace.ts'
import { clientAddress } from './client-address.ts'
import type { InvoiceParams } from './openapi/schemas.ts'

/**
 * Logs one line per request. The line holds no URL, which may contain a search term, and no header, because one
 * contains the token. Of the path, it holds only ids of the right form. The client's address is logged with a 401 or
 * a 429 only.
 */
export function logRequests(app: FastifyInstance, log: Logger): void {
  app.addHook('onResponse', (request, reply, done) => {
    if (requestEnded.hasSubscribers) {
      const { url: route = null } = request.routeOptions
      requestEnded.publish({
        route,
        status: reply.statusCode,
        seconds: (reply.elapsedTime - request.waitedMs) / 1000,
      })
    }
    log.info(describe(request, reply), 'request')
    done()
  })
}

/** Logs a request that was refused unread because of overload. */
export function logRefusal(log: Logger, requestId: string, status: number): void {
  if (requestShed.hasSubscribers) requestShed.publish(null)
  log.info({ request_id: requestId, method: null, route: null, status }, 'request')
}

function describe(request: FastifyRequest, reply: FastifyReply): object {
  const { id, method, grant, routeOptions } = request
  const { customerId, invoiceId } = (request.params ?? {}) as Partial<InvoiceParams>
  const traced = readTrace(request.headers.traceparent)
  const isRefused = reply.statusCode === 401 || reply.statusCode === 429
  return {
    request_id: id,
    method,
    route: routeOptions.url ?? null,
    status: reply.statusCode,
    ms: Math.round(reply.elapsedTime * 1000) / 1000,
    token_id: grant?.token_id,
    customer_id: isCustomerId(customerId ?? '') ? customerId : undefined,
    invoice_id: isInvoiceId(invoiceId ?? '') ? invoiceId : undefined,
    client: isRefused ? clientAddress(request) : undefined,
    trace_id: traced === null ? undefined : traceIdOf(traced),
  }
}
