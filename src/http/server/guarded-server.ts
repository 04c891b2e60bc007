/**
 * An HTTP server that no client stops, fills or confuses: what every connection of this service goes through, on
 * whichever port. Requests on one connection are answered one at a time, in their order. Without that, 60 clients who send 32
 * requests for large answers at once and read none of them take 1.7 GB, and nobody else is answered for half a minute.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createServer } from '../../sources/calls/node-http.ts'
import { capUnread } from './cap-unread.ts'
import { Connection, type Exchange, type LastAnswer, type UnreadableRequest } from './connection.ts'
import { findFault } from './find-fault.ts'
import { watchEventLoop } from './watch-event-loop.ts'

/** Default of `requestTimeoutMs`. */
const defaultRequestTimeoutMs = 10_000

/** A connection on which nothing moves is closed. Longer than any answer takes to begin: a long poll, a PDF that is waited for. */
const silentMs = 60_000

/** After an answer that closes the connection, the client has this long to read it and to close its side. */
const lingerMs = 1_000

/** Requests that may wait on one connection while another is answered. One more ends the connection. */
const maxWaiting = 32

/** The same over all connections together: a waiting request takes some 4 KB. */
const maxWaitingInAll = 4_000

/** The code of a request that is refused by `findFault`; its message says why. */
export const faultyRequest = 'FAULTY_REQUEST'

/** Ends the connection with a whole answer to the request that is being handled, which may not be read to its end. */
export type EndWith = (answer: string) => void

export interface ServerOptions {
  /** Answers a request. The next one of the same connection waits until this one's answer is sent. */
  handle(request: IncomingMessage, response: ServerResponse, endWith: EndWith): void
  /**
   * The whole answer, head and body, to bytes that never became a request. It must have `Connection: close`. `origin` is the
   * header of the request, if that much was read.
   */
  refuse(error: UnreadableRequest, origin: string | undefined): string
  /** Time for which a connection may stay open without a request. */
  keepAliveMs: number
  /** Time for a client to send its request; a slower one is answered 408 and let go. Node checks it ten times within. */
  requestTimeoutMs?: number
  /** Answers to requests beyond the capacity. Without it, all of them wait. */
  excess?: ExcessHandler
}

/** Emitted on a server when from now on every answer ends its connection. */
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
    // Node would answer without a body.
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
  // `Expect` with another word than 100-continue is ignored. Node itself would answer without a body.
  server.on('checkExpectation', receive)
  server.on('clientError', (error: UnreadableRequest, socket) => {
    const connection = connections.get(socket as Socket)
    if (connection === undefined || !socket.writable || isSocketError(error)) socket.destroy()
    else queue.refuse(connection, error, connection.cutShort())
  })
  capUnread(server, connections)
  return server
}

/** The order of requests on each connection, and their number over all. */
class RequestQueue {
  private readonly options: ServerOptions
  private readonly turns = watchEventLoop()
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

  /** Node has made an object of each request in a packet: who goes on sending is not kept. */
  private dropRequest(connection: Connection): void {
    if (++connection.dropped > maxWaiting) connection.socket.destroy()
  }

  private begin(connection: Connection, exchange: Exchange): void {
    const { request, response } = exchange
    connection.current = exchange
    // What follows such a request in the same packet is not read, though nothing is upgraded.
    if (request.headers.upgrade !== undefined) response.setHeader('connection', 'close')
    const { excess } = this.options
    if (excess && this.turns.isExcess() && !excess.isExempt(request.url ?? ''))
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
    const { socket, waiting, last, isClosing } = connection
    if (isClosing || socket.destroyed) return
    const next = waiting.shift()
    if (next === undefined) {
      if (last !== null) sendLast(connection, last)
      return
    }
    this.waitingInAll--
    this.begin(connection, next)
    if (connection.isClosing) return
    if (waiting.length > 0 || last !== null) this.goOnAfterAnswer(connection)
    else socket.resume()
  }
}

/**
 * Closes our side after the answer, and reads on, without a look at it, until the client closes its own: were the socket closed
 * over unread bytes, the answer could be lost on its way (RFC 9112, section 9.6).
 */
function sendLast(connection: Connection, { request, write }: LastAnswer): void {
  const { socket } = connection
  connection.isClosing = true
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

/** A reset, a broken pipe: nobody is there to be answered. */
function isSocketError({ code = '' }: UnreadableRequest): boolean {
  return !code.startsWith('HPE_') && !code.startsWith('ERR_HTTP_')
}
