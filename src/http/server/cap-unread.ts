/** Bounds the memory of answers that clients do not read. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** All that waits to be read, over all connections: beyond it, the clients with the most are cut off. */
const maxUnreadBytes = 48 * 1024 * 1024

const intervalMs = 500

export function capUnread(server: Server, connections: ReadonlyMap<Socket, unknown>): void {
  let timer: NodeJS.Timeout | undefined
  server.on('listening', () => {
    timer = setInterval(look, intervalMs).unref()
  })
  server.on('close', () => clearInterval(timer))

  function look(): void {
    const most = [...connections.keys()].sort((a, b) => b.writableLength - a.writableLength)
    let unreadBytes = most.reduce((sum, { writableLength }) => sum + writableLength, 0)
    for (const socket of most) {
      if (unreadBytes <= maxUnreadBytes) return
      unreadBytes -= socket.writableLength
      socket.destroy()
    }
  }
}
