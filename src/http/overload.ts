/** Answers a request beyond the service's capacity, at the lowest possible cost. */
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { errorCodes } from '../domain/errors.ts'
import { type Cors, preflightHeaders } from './cors.ts'
import { overloaded, writeError } from './errors.ts'
import { logRefusal } from './log-requests.ts'
import { createRequestId } from './request-id.ts'
import { securityHeaders } from './server/bare-answer.ts'
import type { ExcessHandler } from './server/guarded-server.ts'

const headers = {
  ...securityHeaders,
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'retry-after': String(overloaded.retryAfter),
}

/** Matches the path `/live`, also in a target with scheme and host. */
const live = /^(?:https?:\/\/[^/?]*)?\/live$/i

export function refuseExcess(log: Logger, cors: Cors | null): ExcessHandler {
  return {
    isExempt: path => live.test(path),
    answer(request, response) {
      const isPreflight = cors?.isPreflight(request) === true
      const status = isPreflight ? 204 : errorCodes[overloaded.code].status
      const requestId = createRequestId()
      logRefusal(log, requestId, status)
      // The request's body is not read, so the connection cannot serve another request.
      if (hasBody(request)) response.setHeader('connection', 'close')
      const answerHeaders = { ...cors?.headersFor(request.headers.origin), 'request-id': requestId }
      // A refused preflight would hide the reason from the page. So the preflight succeeds, and the page can read the
      // refusal of its request.
      if (isPreflight)
        response.writeHead(status, { ...securityHeaders, ...preflightHeaders, ...answerHeaders }).end()
      else {
        const text = writeError(overloaded, requestId)
        response.writeHead(status, { ...headers, ...answerHeaders, 'content-length': text.length }).end(text)
      }
    },
  }
}

function hasBody({
  headers: { 'content-length': length = '0', 'transfer-encoding': coding },
}: IncomingMessage): boolean {
  return length !== '0' || coding !== undefined
}
