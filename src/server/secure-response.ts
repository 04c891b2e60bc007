import type { IncomingMessage, ServerResponse as Response } from 'node:http'
import { ServerResponse } from '../node-http.ts'
import { type HeadSet, securityHeaders } from './bare-answer.ts'

/** Node's own method that writes the head of every answer. */
interface HeadWriter {
  _storeHeader?(firstLine: string, headers: unknown): void
}

/** More lines of an answer's head, each with its CRLF, for the `Origin` that a request names. */
export type LinesFor = (origin: string | undefined) => string

const { _storeHeader: storeHeader } = ServerResponse.prototype as HeadWriter

/**
 * An answer that has the security headers from the start. They stand behind the status line, as one text: set one by one,
 * they would take some 2 % of the CPU of a list.
 */
class SecureHead extends ServerResponse {
  /** Set on the prototype; an answer may have its own. */
  declare securityLines: string

  _storeHeader(firstLine: string, headers: unknown): void {
    storeHeader?.call(this, `${firstLine}${this.securityLines}`, headers)
  }
}
SecureHead.prototype.securityLines = securityHeaders.lines

/** The same by Node's documented methods, for a Node that writes heads in another way. */
class SecureHeaders extends ServerResponse {
  constructor(...given: ConstructorParameters<typeof ServerResponse>) {
    super(...given)
    for (const [name, value] of securityHeaders.pairs) this.setHeader(name, value)
  }
}

/** Gives an answer, such as a page, security headers of its own in place of the usual ones. Call it before its head is sent. */
export function replaceSecurityHeaders(response: Response, { lines, pairs }: HeadSet): void {
  if (response instanceof SecureHead) {
    response.securityLines = lines
    return
  }
  for (const [name] of securityHeaders.pairs) response.removeHeader(name)
  for (const [name, value] of pairs) response.setHeader(name, value)
}

/** The class of a server's answers. Without `linesFor`, nothing is done for it. */
export function secureResponse(linesFor?: LinesFor): typeof ServerResponse<IncomingMessage> {
  if (storeHeader === undefined) return linesFor === undefined ? SecureHeaders : withHeadersFor(linesFor)
  if (linesFor === undefined) return SecureHead
  return class extends SecureHead {
    override _storeHeader(firstLine: string, headers: unknown): void {
      super._storeHeader(`${firstLine}${linesFor(this.req.headers.origin)}`, headers)
    }
  }
}

function withHeadersFor(linesFor: LinesFor): typeof ServerResponse<IncomingMessage> {
  return class extends SecureHeaders {
    constructor(...given: ConstructorParameters<typeof ServerResponse>) {
      super(...given)
      for (const line of linesFor(this.req.headers.origin).split('\r\n').slice(0, -1))
        this.setHeader(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2))
    }
  }
}
