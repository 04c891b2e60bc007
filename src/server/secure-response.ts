import { ServerResponse } from 'node:http'
import { securityHeaders, securityLines } from './bare-answer.ts'

/** How Node writes an answer's head: what every answer goes through, whoever sends it. */
interface HeadWriter {
  _storeHeader?(firstLine: string, headers: unknown): void
}

const { _storeHeader: storeHeader } = ServerResponse.prototype as HeadWriter

/**
 * An answer that has the security headers from the start. They stand behind the status line, as one text: set one by one,
 * they would take some 2 % of the CPU of a list.
 */
class SecureHead extends ServerResponse {
  declare securityLines: string

  _storeHeader(firstLine: string, headers: unknown): void {
    storeHeader?.call(this, `${firstLine}${this.securityLines}\r\n`, headers)
  }
}
// Not a field: it would be set again for every answer.
SecureHead.prototype.securityLines = securityLines

/** The same by what Node documents, for a Node that writes heads in another way. */
class SecureHeaders extends ServerResponse {
  constructor(...given: ConstructorParameters<typeof ServerResponse>) {
    super(...given)
    for (const [name, value] of securityHeaders) this.setHeader(name, value)
  }
}

export const SecureResponse = storeHeader === undefined ? SecureHeaders : SecureHead

/** Gives an answer other security headers than the usual ones: lines of `writeSecurityLines`. */
export function secure(response: ServerResponse, lines: string): void {
  if (response instanceof SecureHead) response.securityLines = lines
  else
    for (const line of lines.split('\r\n')) {
      const colon = line.indexOf(': ')
      response.setHeader(line.slice(0, colon), line.slice(colon + 2))
    }
}
