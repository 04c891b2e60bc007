/** Ends the connections of a server without the loss of a request. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket, Server as SocketServer } from 'node:net'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { leaving } from './guarded-server.ts'
import { type MoreSockets, noMoreSockets } from './more-sockets.ts'

/** Silence of all connections before those without a request are closed. */
const graceMs = 1_000

/** From now on every answer carries `Connection: close`, and ends its connection. Every request is still answered. */
export function endConnectionsByAnswers(server: Server): void {
  server.prependListener('request', (_request, response) => {
    response.setHeader('connection', 'close')
  })
  server.emit(leaving)
}

/**
 * When a server closes, Node closes every connection without a request under way, though its client may be about to send
 * one, or still be reading the last answer. Here, such connections stay open until nothing was written, nothing waited to
 * be read and no client connected for a while. Connections are looked at only then: a request costs nothing for it.
 */
export function holdConnections(server: Server): void {
  /** With the bytes written at the last look. */
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
    // Node 24 leaves out connections that never sent anything.
    for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
  }
}

/** Longer than a request takes; the rest is cut off then. */
const patienceMs = 8_500

/** The port is closed after this silence; and in any case after the longest wait. */
const quietMs = 100
const longestMs = 500

/** Connections that may wait to be taken, as Node asks the system for. */
const backlog = 511

/**
 * Stops listening without the loss of a connection: the system resets connections that were not accepted yet. Until no client
 * connects for a moment, connections are accepted and not read: a client that waits for an answer does not connect again
 * meanwhile. Then all are read.
 */
async function stopListening(server: Server, sockets: MoreSockets) {
  const taken: Socket[] = []
  const take = (socket: Socket) => {
    taken.push(socket)
    // After Node began to read.
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
 * Stops listening on a port on which other processes go on: clients never stop connecting there. Each socket is closed right
 * after a turn of the event loop in which nobody came by it; who connects between the two is lost, unless the system hands
 * waiting connections on to the others (`net.ipv4.tcp_migrate_req`).
 */
async function leavePort(server: Server, sockets: MoreSockets) {
  const closed = sockets.close(untilEmpty)
  await untilEmpty(server)
  server.close()
  // Not before: whoever connects again for the next request would come here again.
  endConnectionsByAnswers(server)
  return { closed }
}

/** Until a turn of the event loop took nobody, or the longest wait is over. */
async function untilEmpty(socket: SocketServer): Promise<void> {
  const started = performance.now()
  let taken = 0
  const count = () => taken++
  socket.on('connection', count)
  // The first turn may have been looked at before.
  await immediate()
  for (let before = -1; before < taken && performance.now() < started + longestMs; ) {
    before = taken
    await immediate()
  }
  socket.off('connection', count)
}

/** Until nobody connects for a moment, or the longest wait is over. */
async function untilQuiet(taken: readonly Socket[]): Promise<void> {
  const started = performance.now()
  let [last, seen] = [started, taken.length]
  do {
    await sleep(quietMs / 4)
    // Until all that had connected were taken, however late that is: a turn of the event loop takes one of each socket.
    for (let before = -1; before < taken.length && taken.length < seen + backlog; ) {
      before = taken.length
      await immediate()
    }
    if (taken.length > seen) last = performance.now()
    seen = taken.length
  } while (performance.now() < Math.min(last + quietMs, started + longestMs))
}

/** Closes the server and lets connections go as they fall silent; `close` waits for the last of them. */
export async function closeGently(
  server: Server,
  close: () => Promise<unknown> = () => once(server.close(), 'close'),
  sockets = noMoreSockets,
): Promise<void> {
  const cutOff = setTimeout(() => server.closeAllConnections(), patienceMs)
  const { closed } = await (sockets.isAlone ? stopListening : leavePort)(server, sockets)
  // Right after what has arrived was read.
  const letGo = setInterval(() => setImmediate(() => server.closeIdleConnections()), 50)
  await close()
  await closed
  clearInterval(letGo)
  clearTimeout(cutOff)
}
