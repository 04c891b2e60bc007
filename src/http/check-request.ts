/** Checks of every request, before its route. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { findFault, isChunked, withoutOrigin } from '../server/find-fault.ts'

export const maxUrlBytes = 8_192

/** No request has a body, but those of `ReadsBody`. A body up to this size is ignored; a larger one is refused. */
const maxIgnoredBodyBytes = 8_192

/** Whether a route reads the request's body itself. */
export type ReadsBody = (request: IncomingMessage) => boolean

/** Requests whose chunked body turned out to be larger. */
const oversized = new WeakSet<IncomingMessage>()

export function refuseRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  readsBody: ReadsBody,
): ApiError | null {
  const { url = '', headers } = request.raw
  const fault = findFault(request.raw)
  if (fault !== null) {
    reply.header('connection', 'close')
    return new ApiError('invalid_request', fault)
  }
  if (url.length > maxUrlBytes)
    return new ApiError('uri_too_long', `The URL is longer than ${maxUrlBytes} bytes.`)
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  if ((length === '0' && coding === undefined) || readsBody(request.raw)) return null
  // Nobody reads the body, so the connection cannot be used again.
  reply.header('connection', 'close')
  return Number(length) > maxIgnoredBodyBytes || oversized.has(request.raw)
    ? new ApiError('payload_too_large', 'Requests of this API carry no body.')
    : null
}

const slash = 0x2f

/**
 * Passes requests on to `handle` once nothing that is still to come could make them invalid: a chunked body may break
 * off at any chunk, and a request is answered once, not with 200 and then with 400.
 */
export function prepareRequests(handle: RequestListener, readsBody: ReadsBody): RequestListener {
  return (request, response) => {
    if (request.url !== undefined && request.url.charCodeAt(0) !== slash)
      request.url = withoutOrigin(request.url)
    const { 'transfer-encoding': coding } = request.headers
    if (coding === undefined || !isChunked(request) || readsBody(request)) handle(request, response)
    else ignoreBody(request, response, handle)
  }
}

function ignoreBody(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
  let length = 0
  const end = () => {
    request.off('data', count).off('end', end)
    handle(request, response)
  }
  const count = (chunk: Buffer) => {
    length += chunk.length
    if (length <= maxIgnoredBodyBytes) return
    oversized.add(request)
    end()
  }
  request.on('data', count).on('end', end)
  if (/\b100-continue\b/i.test(request.headers.expect ?? '')) response.writeContinue()
}
