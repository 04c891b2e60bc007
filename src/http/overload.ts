/** The answer to a request beyond the service's capacity, which costs as little as it can. */
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

/** The path, also as a whole URL. */
const live = /^(?:https?:\/\/[^/?]*)?\/live$/i

export function refuseExcess(log: Logger, cors: Cors | null): ExcessHandler {
  return {
    isExempt: path => live.test(path),
    answer(request, response) {
      const isPreflight = cors?.isPreflight(request) === true
      const status = isPreflight ? 204 : errorCodes[overloaded.code].status
      const requestId = createRequestId()
      logRefusal(log, requestId, status)
      // Nobody reads its body, so what follows on the connection may not be a request.
      if (hasBody(request)) response.setHeader('connection', 'close')
      const answerHeaders = { ...cors?.headersFor(request.headers.origin), 'request-id': requestId }
      // A page could not read the refusal of what it is about to ask.
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
