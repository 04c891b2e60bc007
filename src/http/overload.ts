/** The answer to a request beyond the service's capacity: one text, made once a second but for its request id. */
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { errorCodes } from '../errors.ts'
import { writeBareAnswer } from '../server/bare-answer.ts'
import { findFault } from '../server/find-fault.ts'
import type { ExcessShell } from '../server/guarded-server.ts'
import { type Cors, findOrigin, preflightHeaders } from './cors.ts'
import { overloaded, writeError } from './errors.ts'
import { logRefusal } from './log-requests.ts'
import { createRequestId } from './request-id.ts'

const { status } = errorCodes[overloaded.code]
const headers = { 'cache-control': 'no-store', 'retry-after': String(overloaded.retryAfter) }

/** The path, also as a whole URL. */
const live = /^(?:https?:\/\/[^/?]*)?\/live$/i

export function refuseExcess(log: Logger, cors: Cors | null): ExcessShell {
  const place = createRequestId()
  const body = writeError(overloaded, place).split(place)
  let whole: string[] = []
  let madeAt = -1

  function begin(answered: number): string {
    const requestId = createRequestId()
    logRefusal(log, requestId, answered)
    return requestId
  }

  return {
    isSpared: path => live.test(path),
    answer(request, response) {
      if (hasUnknownEnd(request)) response.shouldKeepAlive = false
      // Else a page could not read the refusal of what it is about to ask. It costs as little.
      if (cors?.isPreflight(request)) {
        response.writeHead(204, { ...preflightHeaders, 'request-id': begin(204) }).end()
        return
      }
      const requestId = begin(status)
      const text = body.join(requestId)
      response
        .writeHead(status, {
          ...headers,
          'content-type': 'application/json',
          'content-length': text.length,
          'request-id': requestId,
        })
        .end(text)
    },
    write(head) {
      const second = Math.floor(Date.now() / 1_000)
      if (second !== madeAt) {
        madeAt = second
        const given = { ...headers, 'request-id': place }
        const options = { connection: 'keep-alive' }
        whole = writeBareAnswer(status, given, body.join(place), options).split(place)
      }
      const answer = whole.join(begin(status))
      return cors === null ? answer : answer.replace('\r\n', `\r\n${cors.linesFor(findOrigin(head))}`)
    },
  }
}

/** Whether what follows on the connection may not be a request: nobody reads this one's body. */
function hasUnknownEnd(request: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  return length !== '0' || coding !== undefined || findFault(request) !== null
}
