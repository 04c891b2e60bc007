/**
 * An HTTP server that no client can block, exhaust or confuse. Every port of this service uses it. Requests on one
 * connection are answered one at a time, in their order. Without this limit, 60 clients that each send 32 requests
 * for large answers and read none take 1.7 GB, and nobody else is answered for half a minute.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createServer } from '../../sources/calls/node-http.ts'
import { capUnread } from './cap-unread.ts'
import { Connection, type Exchange, type LastAnswer, type UnreadableRequest } from './connection.ts'
import { findFault } from './find-fault.ts'
import { watchEventLoop } from './watch-event-loop.ts'

const defaultRequestTimeoutMs = 10_000

/**
 * A connection without traffic for this long is closed. Longer than any answer takes to begin, also a long poll or a
 * slow PDF.
 */
const silentMs = 60_000

/** Time that the client has to read the last answer and to close its side of the connection. */
const lingerMs = 1_000

/** Maximum of requests that wait on one connection. One more ends the connection. */
const maxWaiting = 32

/** Maximum of requests that wait over all connections. A waiting request takes about 4 KB. */
const maxWaitingInAll = 4_000

/** Code of the error for a request that `findFault` refuses. The error's message gives the reason. */
export const faultyRequest = 'FAULTY_REQUEST'

/** Ends the connection with a complete answer to the current request, whose body may not be read to its end. */
export type EndWith = (answer: string) => void

export interface ServerOptions {
  /** Answers a request. The following request of the same connection waits until the answer is sent. */
  handle(request: IncomingMessage, response: ServerResponse, endWith: EndWith): void
  /**
   * Returns the complete answer, headers and body, to bytes that never became a request. The answer must contain
   * `Connection: close`. `origin` is the request's Origin header, if it was read.
   */
  refuse(error: UnreadableRequest, origin: string | undefined): string
  /** Milliseconds for which a connection may stay open without a request. */
  keepAliveMs: number
  /**
   * Milliseconds that a client has to send its request. A slower client gets 408 and is disconnected. Node checks the
   * timeout ten times per period.
   */
  requestTimeoutMs?: number
  /** Answers requests beyond the capacity. Without this handler, all requests wait. */
  excess?: ExcessHandler
}

/** Emitted on a server when every further answer ends its connection. */
export const leaving = 'fatura:leaving'

export interface ExcessHandler {
  isExempt(path: string): boolean
  answer(request: IncomingMessage, response: ServerResponse): void
}

export function createGuardedServer(options: ServerOptions): Server {
  const { keepAliveMs, requestTimeoutMs = defaultRequestTimeoutMs } = options
  const server = createServer({
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: requestTimeoutMs / 10,
    // Node itself would answer a missing Host header without a body.
    requireHostHeader: false,
  }).setTimeout(silentMs)

  const connections = new Map<Socket, Connection>()
  const queue = new RequestQueue(options)
  server.on('connection', (socket: Socket) => {
    const connection = new Connection(socket)
    connections.set(socket, connection)
    socket.once('close', () => {
      queue.drop(connection)
      connections.delete(socket)
    })
  })
  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket)
    if (connection !== undefined) queue.receive(connection, { request, response })
  }
  server.on('request', receive)
  // An `Expect` header other than 100-continue is ignored. Node itself would answer without a body.
  server.on('checkExpectation', receive)
  server.on('clientError', (error: UnreadableRequest, socket) => {
    const connection = connections.get(socket as Socket)
    if (connection === undefined || !socket.writable || isSocketError(error)) socket.destroy()
    else queue.refuse(connection, error, connection.cutShort())
  })
  capUnread(server, connections)
  return server
}

/** Keeps the order of requests on each connection, and counts the waiting requests over all connections. */
class RequestQueue {
  private readonly options: ServerOptions
  private readonly eventLoop = watchEventLoop()
  private waitingInAll = 0

  constructor(options: ServerOptions) {
    this.options = options
  }

  receive(connection: Connection, exchange: Exchange): void {
    const fault = findFault(exchange.request)
    if (connection.last !== null) this.dropRequest(connection)
    else if (fault !== null)
      this.refuse(connection, Object.assign(new Error(fault), { code: faultyRequest }), exchange.request)
    else if (connection.isAnswering()) this.wait(connection, exchange)
    else this.begin(connection, exchange)
  }

  refuse(connection: Connection, error: UnreadableRequest, request: IncomingMessage | null): void {
    const write = () => this.options.refuse(error, request?.headers.origin)
    this.endWith(connection, { request, write })
  }

  drop(connection: Connection): void {
    this.waitingInAll -= connection.waiting.length
    connection.waiting = []
  }

  /** Node creates an object for each request in a packet. A client that goes on sending requests is disconnected. */
  private dropRequest(connection: Connection): void {
    if (++connection.dropped > maxWaiting) connection.socket.destroy()
  }

  private begin(connection: Connection, exchange: Exchange): void {
    const { request, response } = exchange
    connection.current = exchange
    // Node does not read the requests after an upgrade request in the same packet, although nothing is upgraded here.
    if (request.headers.upgrade !== undefined) response.setHeader('connection', 'close')
    const { excess } = this.options
    if (excess && this.eventLoop.isExcess() && !excess.isExempt(request.url ?? ''))
      excess.answer(request, response)
    else
      this.options.handle(request, response, answer =>
        this.endWith(connection, { request, write: () => answer }),
      )
  }

  private wait(connection: Connection, exchange: Exchange): void {
    const { socket, waiting } = connection
    if (waiting.length === maxWaiting || this.waitingInAll === maxWaitingInAll) {
      socket.destroy()
      return
    }
    waiting.push(exchange)
    this.waitingInAll++
    socket.pause()
    if (waiting.length === 1) this.goOnAfterAnswer(connection)
  }

  private endWith(connection: Connection, last: LastAnswer): void {
    if (connection.last !== null) return
    connection.last = last
    const isItsAnswer = last.request !== null && last.request === connection.current?.request
    if (isItsAnswer || !connection.isAnswering()) {
      this.drop(connection)
      sendLast(connection, last)
    } else if (connection.waiting.length === 0) {
      connection.socket.pause()
      this.goOnAfterAnswer(connection)
    }
  }

  private goOnAfterAnswer(connection: Connection): void {
    connection.current?.response.once('close', () => this.goOn(connection))
  }

  private goOn(connection: Connection): void {
    const { socket, waiting, last, isLastSent } = connection
    if (isLastSent || socket.destroyed) return
    const next = waiting.shift()
    if (next === undefined) {
      if (last !== null) sendLast(connection, last)
      return
    }
    this.waitingInAll--
    this.begin(connection, next)
    if (connection.isLastSent) return
    if (waiting.length > 0 || last !== null) this.goOnAfterAnswer(connection)
    else socket.resume()
  }
}

/**
 * Closes our side after the answer, and discards everything that the client sends until it closes its side. If the
 * socket were closed with unread bytes, the answer could be lost (RFC 9112, section 9.6).
 */
function sendLast(connection: Connection, { request, write }: LastAnswer): void {
  const { socket } = connection
  connection.isLastSent = true
  const answer = write()
  // An answer to HEAD has no body.
  const sent = request?.method === 'HEAD' ? answer.slice(0, answer.indexOf('\r\n\r\n') + 4) : answer
  socket.end(sent, () => {
    if (socket.destroyed) return
    const cutOff = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(cutOff))
  })
  socket.resume()
  request?.resume()
}

/** Whether the socket failed, for example by a reset or a broken pipe. Then no answer can be sent. */
function isSocketError({ code = '' }: UnreadableRequest): boolean {
  return !code.startsWith('HPE_') && !code.startsWith('ERR_HTTP_')
}
