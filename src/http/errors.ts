/** Sends every error in one JSON shape, whether it comes from a handler, from Fastify or from Node's HTTP parser. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError, errorCodes } from '../domain/errors.ts'
import { StoreBusy, StoreUnavailable } from '../store/store.ts'
import { bodyTooLarge, maxUrlBytes } from './check-request.ts'
import { type Cors, findOrigin } from './cors.ts'
import { allowedMethods, answerOptions, refuseMethod } from './methods.ts'
import { createRequestId } from './request-id.ts'
import { sendJson } from './send-json.ts'
import { writeBareAnswer } from './server/bare-answer.ts'
import type { UnreadableRequest } from './server/connection.ts'
import { faultyRequest } from './server/guarded-server.ts'
import type { StoreOutage } from './store-outage.ts'

export const overloaded = new ApiError(
  'overloaded',
  'More requests come than can be served; try again shortly.',
  { retryAfter: 1 },
)

export function writeError({ code, message, param }: ApiError, requestId: string): string {
  return JSON.stringify({ error: { code, message, param, request_id: requestId } })
}

export interface FaultLog {
  log: Logger
  outage: StoreOutage
}

export function handleErrors(app: FastifyInstance, faults: FaultLog): void {
  app.setNotFoundHandler(async (request, reply) => {
    // `OPTIONS *` asks about the server as a whole (RFC 9110, section 9.3.7).
    if (request.method === 'OPTIONS' && request.raw.url === '*') return answerOptions(reply)
    throw new ApiError(
      'route_not_found',
      'Nothing is served at this path; /api/v1/openapi.json lists the routes.',
    )
  })
  app.setErrorHandler((error, request, reply) => sendError(error as Error, request, reply, faults))
}

export function sendError(
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
  faults: FaultLog,
): void {
  const known = logError(error, request.id, faults)
  if (known.retryAfter !== undefined) reply.header('retry-after', String(known.retryAfter))
  reply.code(errorCodes[known.code].status).header('cache-control', 'no-store')
  sendJson(reply, writeError(known, request.id))
}

/** Logs an error if needed, and returns the error that is sent. */
export function logError(error: Error, requestId: string, { log, outage }: FaultLog): ApiError {
  const known = toApiError(error)
  if (known.cause instanceof StoreUnavailable) outage.recordFailure(requestId, known.cause)
  else if (known.code === 'internal') log.error({ request_id: requestId, err: error }, 'unexpected error')
  else if (known.cause !== undefined) log.warn({ request_id: requestId, err: known.cause }, known.code)
  return known
}

function toApiError(error: Error & { code?: string }): ApiError {
  if (error instanceof ApiError) return error
  if (error.code === 'FST_ERR_BAD_URL')
    return new ApiError('invalid_request', 'The path must be percent-encoded UTF-8.')
  if (error instanceof StoreBusy) return overloaded
  if (error instanceof StoreUnavailable)
    return new ApiError('unavailable', 'The store cannot be read right now; try again shortly.', {
      cause: error,
      retryAfter: 1,
    })
  return new ApiError(
    'internal',
    'Something went wrong on our side; quote the request id when you report it.',
  )
}

/**
 * Logs bytes that never became a request, and returns the complete answer to them. `origin` is the Origin header, if
 * it was received.
 */
export function refuseUnreadable(
  error: UnreadableRequest,
  log: Logger,
  cors: Cors | null,
  origin = findOrigin(error.rawPacket?.toString('latin1') ?? ''),
): string {
  const refusal = explainUnreadable(error)
  const { status } = errorCodes[refusal.code]
  const requestId = createRequestId()
  log.info({ request_id: requestId, method: null, route: null, status }, 'request')
  const headers = {
    'cache-control': 'no-store',
    'request-id': requestId,
    ...(status === 405 && { allow: allowedMethods }),
    ...cors?.headersFor(origin),
  }
  return writeBareAnswer(status, headers, writeError(refusal, requestId))
}

const requestLine = /^[A-Z-]+ \S+ HTTP\/1\.[01]\r\n/

function explainUnreadable({ code, message, rawPacket, bytesParsed = 0 }: UnreadableRequest): ApiError {
  const packet = rawPacket?.toString('latin1') ?? ''
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return packet.search('\n') === -1 || packet.search('\n') > maxUrlBytes
        ? new ApiError('uri_too_long', `The URL is longer than ${maxUrlBytes} bytes.`)
        : new ApiError('headers_too_large', 'The request headers are larger than 16 KiB.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request did not arrive completely in time.')
    case bodyTooLarge:
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('payload_too_large', 'Requests of this API carry no body.')
    case faultyRequest:
      return new ApiError('invalid_request', message)
    case 'HPE_INVALID_METHOD':
      // Valid requests may stand before the invalid request in the same packet.
      if (requestLine.test(packet.slice(packet.lastIndexOf('\n', bytesParsed) + 1))) return refuseMethod()
  }
  return new ApiError('invalid_request', 'This is not a valid HTTP/1.1 request.')
}
