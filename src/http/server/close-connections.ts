/** Ends the connections of a server without losing a request. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket, Server as SocketServer } from 'node:net'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { leaving } from './guarded-server.ts'
import { type MoreSockets, noMoreSockets } from './more-sockets.ts'

/** Idle connections are closed after all connections were silent for this long. */
const graceMs = 1_000

/**
 * Makes every answer from now on carry `Connection: close`, which ends its connection. Every request is still
 * answered.
 */
export function endConnectionsByAnswers(server: Server): void {
  server.prependListener('request', (_request, response) => {
    response.setHeader('connection', 'close')
  })
  server.emit(leaving)
}

/**
 * Keeps idle connections open for a while when a server closes. Node would close them at once, although a client may
 * be about to send a request or still be reading an answer. Here, they stay open until nothing was written, nothing
 * waited to be read and no client connected for `graceMs`. The connections are checked only during the close, so
 * requests cost nothing extra.
 */
export function holdConnections(server: Server): void {
  /** The bytes that each connection had written at the last check. */
  const connections = new Map<Socket, number>()
  let quietSince: number | undefined
  server.on('connection', (socket: Socket) => {
    connections.set(socket, -1)
    socket.once('close', () => connections.delete(socket))
  })
  const closeIdleConnections = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    const now = performance.now()
    quietSince ??= now
    for (const [socket, written] of connections) {
      if (socket.bytesWritten !== written || socket.writableLength > 0) quietSince = now
      connections.set(socket, socket.bytesWritten)
    }
    if (now - quietSince < graceMs) return
    closeIdleConnections()
    // Node 24 does not close connections that never sent anything.
    for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
  }
}

/** Time after which all remaining connections are cut off. Longer than any request takes. */
const patienceMs = 8_500

/** The port is closed after `quietMs` without a new connection, and after `longestMs` in any case. */
const quietMs = 100
const longestMs = 500

/** Node's default for the number of connections that may wait to be accepted. */
const backlog = 511

/**
 * Stops listening without losing a connection. The system would reset connections that are not accepted before the port
 * closes. So new connections are accepted, but not read, until no client connects for a moment. A client that waits for
 * an answer does not connect again meanwhile. Then all connections are read.
 */
async function stopListening(server: Server, sockets: MoreSockets) {
  const taken: Socket[] = []
  const take = (socket: Socket) => {
    taken.push(socket)
    // Deferred, because Node begins to read a socket only after its connection event.
    process.nextTick(() => socket.pause())
  }
  server.on('connection', take)
  await untilQuiet(taken)
  server.close()
  const closed = sockets.close()
  server.off('connection', take)
  for (const socket of taken) socket.resume()
  return { closed }
}

/**
 * Stops listening on a port that other processes share. Clients never stop connecting there. So each socket is closed
 * right after a turn of the event loop without a new connection. A connection that arrives in between is lost, unless
 * the system passes waiting connections to other sockets (`net.ipv4.tcp_migrate_req`).
 */
async function leavePort(server: Server, sockets: MoreSockets) {
  const closed = sockets.close(untilEmpty)
  await untilEmpty(server)
  server.close()
  // Answers end their connections only after the port is closed. Otherwise a client would connect again and could
  // reach this process.
  endConnectionsByAnswers(server)
  return { closed }
}

/** Resolves when a turn of the event loop accepted no connection, or after `longestMs`. */
async function untilEmpty(socket: SocketServer): Promise<void> {
  const started = performance.now()
  let taken = 0
  const count = () => taken++
  socket.on('connection', count)
  // The current turn may have accepted its connections before the listener was added.
  await immediate()
  for (let before = -1; before < taken && performance.now() < started + longestMs; ) {
    before = taken
    await immediate()
  }
  socket.off('connection', count)
}

/** Resolves when no client connected for `quietMs`, or after `longestMs`. */
async function untilQuiet(taken: readonly Socket[]): Promise<void> {
  const started = performance.now()
  let [last, seen] = [started, taken.length]
  do {
    await sleep(quietMs / 4)
    // Waits until all queued connections are accepted, however long that takes. A turn of the event loop accepts one
    // connection of each socket.
    for (let before = -1; before < taken.length && taken.length < seen + backlog; ) {
      before = taken.length
      await immediate()
    }
    if (taken.length > seen) last = performance.now()
    seen = taken.length
  } while (performance.now() < Math.min(last + quietMs, started + longestMs))
}

/** Closes the server and ends connections when they fall silent. `close` waits for the last connection. */
export async function closeGently(
  server: Server,
  close: () => Promise<unknown> = () => once(server.close(), 'close'),
  sockets = noMoreSockets,
): Promise<void> {
  const cutOff = setTimeout(() => server.closeAllConnections(), patienceMs)
  const { closed } = await (sockets.isAlone ? stopListening : leavePort)(server, sockets)
  // `setImmediate` runs after the event loop has read what arrived.
  const letGo = setInterval(() => setImmediate(() => server.closeIdleConnections()), 50)
  await close()
  await closed
  clearInterval(letGo)
  clearTimeout(cutOff)
}
