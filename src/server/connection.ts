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

export interface Connection {
  socket: Socket
  /** The request that is being answered, or was last. */
  current: Exchange | null
  waiting: Exchange[]
  /** The request that could not be read; it is answered after all that came before. */
  unreadable: UnreadableRequest | null
  /** Whether requests were dropped: the connection closes after the answer to the last that was not. */
  full: boolean
  /** Whether the end of the current answer is listened to. */
  followed: boolean
  /** Whether the last answer is given: anything that still comes is dropped. */
  closing: boolean
  /** The request that was read last. */
  latest: IncomingMessage | null
  /** Whether what arrives is looked at before it is read. */
  watched: boolean
  /** Whether that look counted the request that is now read. */
  counted: boolean
  /** Method and target of the latest request line with more than one space between its parts. */
  spaced: string | null
}

export function createConnection(socket: Socket): Connection {
  return {
    socket,
    current: null,
    waiting: [],
    unreadable: null,
    full: false,
    followed: false,
    closing: false,
    latest: null,
    watched: false,
    counted: false,
    spaced: null,
  }
}

export function isAnswering({ current }: Connection): boolean {
  return current !== null && !current.response.writableFinished && !current.response.destroyed
}

/** Whether nothing that comes now is read. */
export function isOver({ unreadable, full, closing }: Connection): boolean {
  return unreadable !== null || full || closing
}

/** Whether the request that could not be read to its end is the very one to be answered, and no byte of that is sent. */
export function isCutShort({ current }: Connection): boolean {
  return current !== null && !current.request.complete && !current.response.headersSent
}
