/** Cuts off clients that send requests and do not read: their answers would wait in memory. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** A client that takes no byte of its answer for this long is cut off. */
const stalledMs = 10_000

/** All that waits to be read, over all connections: beyond it, the clients with the most are cut off. */
const maxUnreadBytes = 48 * 1024 * 1024

const intervalMs = 500

/** Looks at the connections now and then: a request costs nothing for it. */
export function watchReaders(server: Server, connections: ReadonlyMap<Socket, unknown>): void {
  const readers = new WeakMap<Socket, Record<'takenBytes' | 'sinceMs', number>>()
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(look, intervalMs).unref()
  })
  server.on('close', () => clearInterval(timer))

  function look(): void {
    const nowMs = performance.now()
    let unreadBytes = 0
    for (const socket of connections.keys()) {
      const { writableLength } = socket
      if (writableLength === 0) readers.delete(socket)
      else if (isStalled(socket, nowMs)) socket.destroy()
      else unreadBytes += writableLength
    }
    if (unreadBytes > maxUnreadBytes) cutOffMost(unreadBytes)
  }

  function isStalled(socket: Socket, nowMs: number): boolean {
    const takenBytes = countTaken(socket)
    const reader = readers.get(socket)
    if (reader === undefined || reader.takenBytes !== takenBytes)
      readers.set(socket, { takenBytes, sinceMs: nowMs })
    else if (nowMs - reader.sinceMs >= stalledMs) return true
    return false
  }

  function cutOffMost(unreadBytes: number): void {
    const most = [...connections.keys()].sort((a, b) => b.writableLength - a.writableLength)
    for (const socket of most) {
      if (unreadBytes <= maxUnreadBytes) return
      unreadBytes -= socket.writableLength
      socket.destroy()
    }
  }
}

/** Bytes that the system has taken for the client. Only the handle knows the progress of one large write. */
function countTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { bytesWritten: number; writeQueueSize: number } | null }
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten - socket.writableLength
}
