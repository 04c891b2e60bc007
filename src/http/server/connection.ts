/** One client's connection, with the request that is being answered and the requests that wait. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Bytes that did not become a valid request, with the reason from Node's parser or from `findFault`. */
export type UnreadableRequest = Error & {
  code?: string
  rawPacket?: Buffer
  bytesParsed?: number
}

/**
 * The last answer of a connection, to a request that may not be read to its end. `write` runs when the answer is
 * sent.
 */
export interface LastAnswer {
  request: IncomingMessage | null
  write(): string
}

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

export class Connection {
  readonly socket: Socket
  /** The request that is being answered or was answered last. */
  current: Exchange | null = null
  waiting: Exchange[] = []
  /** Sent after all earlier answers. A connection with a last answer serves no further request. */
  last: LastAnswer | null = null
  isLastSent = false
  /** Number of requests that arrived after the connection stopped serving. */
  dropped = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  isAnswering(): boolean {
    const { current } = this
    return current !== null && !current.response.writableFinished && !current.response.destroyed
  }

  /**
   * Returns the request that is being answered, if it has not arrived completely and no byte of its answer was sent.
   * Otherwise null.
   */
  cutShort(): IncomingMessage | null {
    const { current } = this
    return current === null || current.request.complete || current.response.headersSent
      ? null
      : current.request
  }
}
