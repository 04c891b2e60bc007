/** One client's connection: the request that is being answered, and those that wait. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Node's error for a request that it could not read, or ours for one that asks for a tunnel. */
export type UnreadableRequest = Error & {
  code?: string
  rawPacket?: Buffer
  bytesParsed?: number
  /** The header, where it was read. */
  origin?: string | undefined
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
  /** The request that could not be read; it is answered after all that came before. */
  unreadable: UnreadableRequest | null = null
  /** Whether requests were dropped: the connection closes after the answer to the last that was not. */
  full = false
  /** Whether the end of the current answer is listened to. */
  followed = false
  /** Whether the last answer is given: anything that still comes is dropped. */
  closing = false
  /** The request that was read last. */
  latest: IncomingMessage | null = null
  /** Whether what arrives is looked at before it is read. */
  watched = false
  /** Whether that look counted the request that is now read. */
  counted = false
  /** Bytes that were read when the latest request was; infinite where its body may follow. */
  bytesRead = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  isAnswering(): boolean {
    const { current } = this
    return current !== null && !current.response.writableFinished && !current.response.destroyed
  }

  /** Whether nothing that comes now is read. */
  isOver(): boolean {
    return this.unreadable !== null || this.full || this.closing
  }

  /** Whether everything that was asked is answered. */
  isIdle(): boolean {
    return !this.isOver() && this.waiting.length === 0 && !this.isAnswering()
  }

  /** Whether the request that could not be read to its end is the very one to be answered, and no byte of that is sent. */
  isCutShort(): boolean {
    return this.current !== null && !this.current.request.complete && !this.current.response.headersSent
  }
}
