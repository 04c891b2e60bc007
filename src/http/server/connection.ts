/** One client's connection: the request that is being answered, and those that wait. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Why bytes did not become a request, as Node tells it; or a request that is none, in our words. */
export type UnreadableRequest = Error & {
  code?: string
  rawPacket?: Buffer
  bytesParsed?: number
}

/** The last answer of a connection, made when it is sent, to a request that may not be read to its end. */
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
  /** The request that is being answered, or was last. */
  current: Exchange | null = null
  waiting: Exchange[] = []
  /** It is sent after all that came before, and nothing is served after it. */
  last: LastAnswer | null = null
  /** Whether the last answer is sent. */
  isClosing = false
  /** Requests that came when nothing was served any more. */
  dropped = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  isAnswering(): boolean {
    const { current } = this
    return current !== null && !current.response.writableFinished && !current.response.destroyed
  }

  /** The request that is being answered, if it did not come to its end and no byte of its answer is sent. */
  cutShort(): IncomingMessage | null {
    const { current } = this
    return current === null || current.request.complete || current.response.headersSent
      ? null
      : current.request
  }
}
