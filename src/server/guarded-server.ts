/**
 * An HTTP server that no client stops, fills or confuses: what every connection of this service goes through, on
 * whichever port. Requests on one connection are answered one at a time, in their order; every socket is watched to its
 * end, those that leave Node's own handling included.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer } from '../node-http.ts'
import { Connection, type Exchange, type UnreadableRequest } from './connection.ts'
import { refuseUnread } from './refuse-unread.ts'
import { isSpaced, spacedLine } from './request-line.ts'
import { type LinesFor, secureResponse } from './secure-response.ts'
import { watchEventLoop } from './watch-event-loop.ts'
import { watchReaders } from './watch-readers.ts'

/** Default of `requestTimeoutMs`. */
const usualRequestTimeoutMs = 10_000

/** After an answer that closes the connection, the client has this long to read it and to close its side. */
const lingerMs = 1_000

/** Requests that may wait on one connection while another is answered; later ones are dropped, and it closes. */
const maxWaiting = 32

/** The same over all connections together: a waiting request takes some 4 KB. */
const maxWaitingInAll = 4_000

export const tunnelRequested = 'TUNNEL_REQUESTED'

export interface ServerShell {
  /** Answers a request. The next one of the same connection waits until this one's answer is sent. */
  handle: RequestListener
  /**
   * The whole answer, head and body, to bytes that never became a request. It must have `Connection: close`. `origin` is
   * the request's, if that much was read.
   */
  refuse(error: UnreadableRequest, origin: string | undefined): string
  /** Time for which a connection may stay open without a request. */
  keepAliveMs: number
  /** Time for a client to send its request; a slower one is answered 408 and let go. Node checks it ten times within. */
  requestTimeoutMs?: number
  /** Answers to requests beyond the capacity. Without it, all of them wait. */
  excess?: ExcessShell
  /** More lines in the head of every answer that is not given as a whole text. */
  linesFor?: LinesFor | undefined
}

export interface ExcessShell {
  isSpared(path: string): boolean
  answer(request: IncomingMessage, response: ServerResponse): void
  /** The same, as a whole answer that keeps the connection, to a request of this head. */
  write(head: string): string
}

/** Emitted on a server when from now on every answer ends its connection. */
export const leaving = 'fatura:leaving'

export function createGuardedServer({
  handle,
  refuse,
  keepAliveMs,
  requestTimeoutMs = usualRequestTimeoutMs,
  excess,
  linesFor,
}: ServerShell): Server {
  const connections = new Map<Socket, Connection>()
  const turns = watchEventLoop()
  let waitingInAll = 0
  let isLeaving = false
  const server = createServer({
    ServerResponse: secureResponse(linesFor),
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: requestTimeoutMs / 10,
    // Node would answer without a body.
    requireHostHeader: false,
  })

  server.on('connection', (socket: Socket) => {
    const connection = new Connection(socket)
    connections.set(socket, connection)
    // Node takes its own listener off sockets that it hands out; an error without a listener ends the process.
    socket.on('error', ignore)
    socket.once('close', () => {
      drop(connection)
      connections.delete(socket)
    })
    // Node calls this after an answer that closes the connection.
    socket.destroySoon = () => linger(connection)
  })
  server.on('request', receive)
  // With listeners of these two, Node sends neither "100 Continue" nor a bare 417 by itself.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
  server.on('clientError', (error: UnreadableRequest, socket) => fail(error, socket as Socket))
  server.on('connect', ({ socket, headers: { origin } }, tunnel: Duplex) => {
    tunnel.on('error', ignore)
    // Node no longer passes this on, and an answer in flight waits for it.
    socket.on('drain', () => connections.get(socket)?.current?.response.emit('drain'))
    fail(Object.assign(new Error('A tunnel was asked for'), { code: tunnelRequested, origin }), socket)
  })
  server.once(leaving, () => {
    isLeaving = true
  })
  watchReaders(server, connections)
  return server

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.isOver()) return
    connection.latest = request
    // The one method that Node reads and does not name among its methods: the preface of HTTP/2.
    if (request.method === 'PRI')
      fail(Object.assign(new Error('HTTP/2'), { code: 'HPE_INVALID_METHOD' }), request.socket)
    else if (isSpaced(connection, request))
      fail(Object.assign(new Error('Spaces'), { code: spacedLine }), request.socket)
    else if (connection.isAnswering()) wait(connection, { request, response })
    else begin(connection, { request, response })
  }

  function begin(connection: Connection, exchange: Exchange): void {
    const { request, response } = exchange
    connection.current = exchange
    // Node drops what follows such a request in the same packet, though nothing is upgraded.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const { counted } = connection
    connection.counted = false
    if (excess && !counted && turns.isExcess() && !excess.isSpared(request.url ?? '')) {
      excess.answer(request, response)
      watch(connection, excess)
    } else handle(request, response)
  }

  function watch(connection: Connection, { isSpared, write }: ExcessShell): void {
    if (connection.watched) return
    connection.watched = true
    const isShedding = () => turns.isShedding() && !isLeaving
    refuseUnread(connection, isShedding, (path, head) => {
      if (turns.isExcess() && !isSpared(path)) return write(head)
      connection.counted = true
      return null
    })
  }

  function wait(connection: Connection, exchange: Exchange): void {
    const { socket, waiting } = connection
    if (waiting.length < maxWaiting && waitingInAll < maxWaitingInAll) {
      waiting.push(exchange)
      waitingInAll++
    } else {
      connection.full = true
      stopParser(socket)
      const last = waiting.at(-1)
      if (last !== undefined) last.response.shouldKeepAlive = false
    }
    socket.pause()
    follow(connection)
  }

  function follow(connection: Connection): void {
    if (connection.followed) return
    connection.followed = true
    connection.current?.response.once('close', () => {
      connection.followed = false
      goOn(connection)
    })
  }

  function goOn(connection: Connection): void {
    const { socket, waiting, unreadable, full } = connection
    if (connection.closing || socket.destroyed) return
    const next = waiting.shift()
    if (next !== undefined) {
      waitingInAll--
      const isLast = waiting.length === 0 && unreadable === null && !full
      if (isLast) socket.resume()
      begin(connection, next)
      if (!isLast) follow(connection)
    } else if (unreadable !== null) answerUnreadable(connection, unreadable)
    else if (full) linger(connection)
  }

  function fail(error: UnreadableRequest, socket: Socket): void {
    const connection = connections.get(socket)
    if (connection === undefined || !socket.writable || isSocketError(error)) {
      socket.destroy()
      return
    }
    if (connection.isOver()) return
    connection.unreadable = error
    if (connection.waiting.length === 0 && (!connection.isAnswering() || connection.isCutShort()))
      answerUnreadable(connection, error)
    else {
      socket.pause()
      follow(connection)
    }
  }

  function answerUnreadable(connection: Connection, error: UnreadableRequest): void {
    const { socket, current } = connection
    const origin = connection.isCutShort() ? current?.request.headers.origin : error.origin
    // A late answer of its handler must not follow the refusal.
    if (connection.isAnswering()) current?.response.detachSocket(socket)
    socket.write(refuse(error, origin))
    linger(connection)
  }

  /**
   * Closes our side and reads on, without a look at it, until the client closes its own: were the socket closed over
   * unread bytes, the answer could be lost on its way (RFC 9112, section 9.6).
   */
  function linger(connection: Connection): void {
    const { socket } = connection
    if (connection.closing) return
    connection.closing = true
    drop(connection)
    socket.removeAllListeners('data')
    socket.on('data', ignore)
    socket.resume()
    socket.end(() => {
      if (socket.destroyed) return
      const cutOff = setTimeout(() => socket.destroy(), lingerMs)
      socket.once('close', () => clearTimeout(cutOff))
    })
  }

  function drop(connection: Connection): void {
    waitingInAll -= connection.waiting.length
    connection.waiting = []
  }
}

/**
 * Node reads a packet to its end, and makes objects of all the requests in it: thousands, of one packet. Its parser stops
 * only for a request that begins another protocol; the rest is dropped.
 */
function stopParser(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming: () => number } | null }
  if (parser) parser.onIncoming = () => beginsAnotherProtocol
}

const beginsAnotherProtocol = 2

/** A reset, a broken pipe: nobody is there to be answered. */
function isSocketError({ code = '' }: UnreadableRequest): boolean {
  return !code.startsWith('HPE_') && !code.startsWith('ERR_HTTP_') && code !== tunnelRequested
}

function ignore(): void {}
