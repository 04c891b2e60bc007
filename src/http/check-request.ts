/** Checks of every request, before its route. */
import type { IncomingMessage, RequestListener } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import { withoutOrigin } from './server/find-fault.ts'
import type { ServerOptions } from './server/guarded-server.ts'

export const maxUrlBytes = 8_192

/** No request has a body, but those of `ReadsBody`. A body up to this size is ignored; a larger one is refused. */
const maxIgnoredBodyBytes = 8_192

/** The code of a request with a larger one. */
export const bodyTooLarge = 'BODY_TOO_LARGE'

/** Whether a route reads the request's body itself. */
export type ReadsBody = (request: IncomingMessage) => boolean

export function refuseLongUrl({ raw: { url = '' } }: FastifyRequest): ApiError | null {
  return url.length > maxUrlBytes
    ? new ApiError('uri_too_long', `The URL is longer than ${maxUrlBytes} bytes.`)
    : null
}

/**
 * Passes requests on to `handle` once nothing that is still to come could make them invalid: a body may break off, and a request
 * is answered once, not with 200 and then with 400. `endTooLarge` makes the answer to one with a larger body.
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

/** Calls back at the body's end, or once it is too large. */
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
