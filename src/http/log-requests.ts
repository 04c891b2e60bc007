import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type DestinationStream, type Logger, pino } from 'pino'
import { isCustomerId, isInvoiceId } from '../invoice.ts'
import { requestEnded, requestShed } from '../telemetry.ts'
import { readTrace, traceIdOf } from '../trace.ts'
import { clientAddress } from './client-address.ts'
import type { InvoiceParams } from './openapi/schemas.ts'

const { info } = pino.levels.values as { info: number }

/** The parts of a logger from which a line is written by hand: pino's own way takes some 3 µs more a request. */
interface LineParts {
  [pino.symbols.streamSym]: DestinationStream
  [pino.symbols.timeSym]: () => string
}

/**
 * One line a request. It holds no URL, which may hold a search term; no header, since one holds the token; and of the
 * path only ids of the right form. The client's address is logged with a 401 and a 429 alone. So nothing needs to be escaped.
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
    if (log.levelVal <= info) writeLine(log, describe(request, reply))
    done()
  })
}

/** The line of a request that was shed unread. */
export function logRefusal(log: Logger, requestId: string, status: number): void {
  if (requestShed.hasSubscribers) requestShed.publish(null)
  if (log.levelVal <= info)
    writeLine(log, `"request_id":"${requestId}","method":null,"route":null,"status":${status}`)
}

function writeLine(log: Logger, fields: string): void {
  const { [pino.symbols.streamSym]: stream, [pino.symbols.timeSym]: time } = log as unknown as LineParts
  stream.write(`{"level":${info}${time()},${fields},"msg":"request"}\n`)
}

function describe(request: FastifyRequest, reply: FastifyReply): string {
  const { id, method, grant, routeOptions } = request
  const { customerId = '', invoiceId = '' } = (request.params ?? {}) as Partial<InvoiceParams>
  const route = routeOptions.url === undefined ? 'null' : `"${routeOptions.url}"`
  const ms = Math.round(reply.elapsedTime * 1000) / 1000
  const token = grant ? `,"token_id":"${grant.token_id}"` : ''
  const customer = isCustomerId(customerId) ? `,"customer_id":"${customerId}"` : ''
  const invoice = isInvoiceId(invoiceId) ? `,"invoice_id":"${invoiceId}"` : ''
  const traced = readTrace(request.headers.traceparent)
  const trace = traced === null ? '' : `,"trace_id":"${traceIdOf(traced)}"`
  const refused = reply.statusCode === 401 || reply.statusCode === 429
  const client = refused ? `,"client":"${clientAddress(request)}"` : ''
  return `"request_id":"${id}","method":"${method}","route":${route},"status":${reply.statusCode},"ms":${ms}${token}${customer}${invoice}${client}${trace}`
}
