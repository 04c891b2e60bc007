/** Bounds the memory of answers that clients do not read. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Maximum of unread bytes over all connections. Beyond it, the connections with the most unread bytes are destroyed.
 */
const maxUnreadBytes = 48 * 1024 * 1024

const intervalMs = 500

export function capUnread(server: Server, connections: ReadonlyMap<Socket, unknown>): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(check, intervalMs).unref()
  })
  server.on('close', () => clearInterval(timer))

  function check(): void {
    const largestFirst = [...connections.keys()].sort((a, b) => b.writableLength - a.writableLength)
    let unreadBytes = largestFirst.reduce((sum, { writableLength }) => sum + writableLength, 0)
    for (const socket of largestFirst) {
      if (unreadBytes <= maxUnreadBytes) return
      unreadBytes -= socket.writableLength
      socket.destroy()
    }
  }
}
