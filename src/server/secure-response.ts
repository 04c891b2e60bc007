import type { IncomingMessage, ServerResponse as Response } from 'node:http'
import { ServerResponse } from '../node-http.ts'
import { securityHeaders, writeLines } from './bare-answer.ts'

/** Node's own method that writes the head of every answer. */
interface HeadWriter {
  _storeHeader(firstLine: string, headers: unknown): void
}

/** More lines of an answer's head, each with its CRLF, for the `Origin` that a request names. */
export type LinesFor = (origin: string | undefined) => string

const { _storeHeader: storeHeader } = ServerResponse.prototype as unknown as HeadWriter
if (storeHeader === undefined) throw new Error('This version of Node writes heads in another way.')

/**
 * An answer that has the security headers from the start. They stand behind the status line, as one text: set one by one,
 * they would take some 2 % of the CPU of a list.
 */
class SecureResponse extends ServerResponse {
  /** Set on the prototype; an answer may have its own. */
  declare securityLines: string

  _storeHeader(firstLine: string, headers: unknown): void {
    storeHeader.call(this, `${firstLine}${this.securityLines}`, headers)
  }
}
SecureResponse.prototype.securityLines = writeLines(securityHeaders)

/** Gives an answer, such as a page, security headers of its own in place of the usual ones. Call it before its head is sent. */
export function replaceSecurityHeaders(response: Response, lines: string): void {
  const secured = response as SecureResponse
  secured.securityLines = lines
}

/** The class of a server's answers. Without `linesFor`, nothing is done for it. */
export function secureResponse(linesFor?: LinesFor): typeof ServerResponse<IncomingMessage> {
  if (linesFor === undefined) return SecureResponse
  return class extends SecureResponse {
    override _storeHeader(firstLine: string, headers: unknown): void {
      super._storeHeader(`${firstLine}${linesFor(this.req.headers.origin)}`, headers)
    }
  }
}
