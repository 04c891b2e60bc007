import { ServerResponse } from 'node:http'
import { securityLines } from './bare-answer.ts'

/** How Node writes an answer's head: what every answer goes through, whoever sends it. */
interface HeadWriter {
  _storeHeader(firstLine: string, headers: unknown): void
}

const { _storeHeader: storeHeader } = ServerResponse.prototype as unknown as HeadWriter

/**
 * An answer that has the security headers from the start. They stand behind the status line, as one text: set one by one,
 * each would be looked up, checked and joined with every answer.
 */
export class SecureResponse extends ServerResponse {
  _storeHeader(firstLine: string, headers: unknown): void {
    storeHeader.call(this, `${firstLine}${securityLines}\r\n`, headers)
  }
}
