import type { IncomingMessage, RequestListener } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { withoutOrigin } from './server/find-fault.ts'
import type { ServerOptions } from './server/guarded-server.ts'

export const maxUrlBytes = 8_192

/**
 * Maximum size of a body that is ignored. A larger body is refused. Routes for which `ReadsBody` is true read their
 * body themselves.
 */
const maxIgnoredBodyBytes = 8_192

/** Code of the error for a request whose body is larger than `maxIgnoredBodyBytes`. */
export const bodyTooLarge = 'BODY_TOO_LARGE'

export type ReadsBody = (request: IncomingMessage) => boolean

export function refuseLongUrl({ raw: { url = '' } }: FastifyRequest): ApiError | null {
  return url.length > maxUrlBytes
    ? new ApiError('uri_too_long', `The URL is longer than ${maxUrlBytes} bytes.`)
    : null
}

/**
 * Passes a request to `handle` once its body has arrived. A body may break off, and a request must not be answered
 * with 200 and then with 400. `endTooLarge` returns the answer to a request whose body is too large.
 */
export function ignoreBodies(
  handle: RequestListener,
  readsBody: ReadsBody,
  endTooLarge: (request: IncomingMessage) => string,
): ServerOptions['handle'] {
  return (request, response, endWith) => {
    request.url = withoutOrigin(request.url ?? '')
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
    if ((length === '0' && coding === undefined) || readsBody(request)) handle(request, response)
    else if (Number(length) > maxIgnoredBodyBytes) endWith(endTooLarge(request))
    else
      ignoreBody(request, isTooLarge => {
        if (isTooLarge) endWith(endTooLarge(request))
        else handle(request, response)
      })
  }
}

/** Calls `done` at the end of the body, or once the body is too large. */
function ignoreBody(request: IncomingMessage, done: (isTooLarge: boolean) => void): void {
  let length = 0
  const end = () => {
    request.off('data', count).off('end', end)
    done(length > maxIgnoredBodyBytes)
  }
  const count = (chunk: Buffer) => {
    length += chunk.length
    if (length > maxIgnoredBodyBytes) end()
  }
  request.on('data', count).on('end', end)
}
