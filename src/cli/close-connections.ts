/** How the connections of a server end without the loss of a request. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long all must have been silent, in milliseconds, before connections without a request are closed. */
const grace = 1_000

/** From now on every answer says `Connection: close`, and ends its connection. All that is asked is still answered. */
export function endConnectionsByAnswers(server: Server): void {
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
}

/**
 * When a server closes, Node closes every connection without a request under way, though its client may be about to send
 * one, or still be reading the last answer. Here, such connections stay open until nothing was written, nothing waited to
 * be read and nobody connected for a while. Connections are looked at only then: a request costs nothing for it.
 */
export function holdConnections(server: Server): void {
  /** With how much was written when they were last looked at. */
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
    if (now - quietSince >= grace) closeIdleConnections()
  }
}

/** Longer than a request takes; what is not done by then is cut off. */
const patience = 9_000

/** Closes the server by `close`, and lets its connections go as they fall silent. */
export async function closeGently(server: Server, close: () => Promise<void>): Promise<void> {
  // Right after what has arrived was read.
  const letGo = setInterval(() => setImmediate(() => server.closeIdleConnections()), 50)
  const cutOff = setTimeout(() => server.closeAllConnections(), patience)
  await close()
  clearInterval(letGo)
  clearTimeout(cutOff)
}
