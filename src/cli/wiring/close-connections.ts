/** How the connections of a server end without the loss of a request. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { leaving } from '../../server/guarded-server.ts'

/** How long all must have been silent, in milliseconds, before connections without a request are closed. */
const graceMs = 1_000

/** From now on every answer says `Connection: close`, and ends its connection. All that is asked is still answered. */
export function endConnectionsByAnswers(server: Server): void {
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  server.emit(leaving)
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
    if (now - quietSince < graceMs) return
    closeIdleConnections()
    // Node 24 leaves out those that never sent anything.
    for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
  }
}

/** Longer than a request takes; what is not done by then is cut off. */
const patienceMs = 8_500

const tick = 100
const longestExtension = 500

/**
 * Waits for the given milliseconds, and a little longer when this process had no time to serve at their end: whoever
 * connected meanwhile would be cut off unheard.
 */
export async function keepServing(delayMs: number): Promise<void> {
  const until = performance.now() + delayMs
  for (let asked = performance.now(); asked < until; asked = performance.now()) {
    await sleep(Math.min(tick, until - asked), undefined, { ref: false })
    const isLate = performance.now() - asked > 2 * tick
    if (isLate && performance.now() >= until) await sleep(longestExtension, undefined, { ref: false })
  }
}

/** Closes the server by `close`, and lets its connections go as they fall silent. */
export async function closeGently(server: Server, close: () => Promise<void>): Promise<void> {
  // Right after what has arrived was read.
  const letGo = setInterval(() => setImmediate(() => server.closeIdleConnections()), 50)
  const cutOff = setTimeout(() => server.closeAllConnections(), patienceMs)
  // Whoever has connected already is taken in before nobody can any more.
  for (let turn = 0; turn < 2; turn++) await immediate()
  await close()
  clearInterval(letGo)
  clearTimeout(cutOff)
}
