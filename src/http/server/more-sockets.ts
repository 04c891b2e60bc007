/**
 * Several listening sockets on a server's port. The event loop takes one connection of each socket in a turn: with one socket,
 * whoever keeps the turns long with requests and opens connections beside them would keep newcomers out.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer, type Server as SocketServer } from 'node:net'

const socketsInAll = 32

interface Place {
  host: string
  port: number
}

/** How a server listens. `isAlone`: no other program listens on the port. */
interface SharedPlace extends Place {
  reusePort: boolean
  isAlone: boolean
}

/**
 * How a server is to listen so that more sockets can join it. Unless it shares the port `withOthers`, throws as `listen`
 * does when the port is taken: the system itself lets two programs of one user share a port where both ask for that.
 */
export async function sharedPlace(place: Place, withOthers = false): Promise<SharedPlace> {
  if (withOthers) return { ...place, reusePort: true, isAlone: false }
  // The system chooses a free one.
  if (place.port !== 0) await listenAndClose(place)
  return { ...place, reusePort: await canShare(place.host), isAlone: true }
}

/** Opens more sockets on the port of a server that listens, if it listens as `sharedPlace` says. They close with `close`. */
export async function openMoreSockets(
  server: Server,
  { reusePort, isAlone }: Pick<SharedPlace, 'reusePort' | 'isAlone'>,
) {
  const sockets: SocketServer[] = []
  const bound = server.address()
  if (reusePort && bound !== null && typeof bound === 'object')
    while (sockets.length < socketsInAll - 1) {
      // As Node's HTTP server makes its own.
      const socket = createServer({ allowHalfOpen: true, noDelay: true })
      socket.on('connection', connection => server.emit('connection', connection))
      sockets.push(socket)
      socket.listen({ host: bound.address, port: bound.port, reusePort })
      await once(socket, 'listening')
    }
  let closed: Promise<unknown> | undefined
  return {
    isAlone,
    /** Stops listening on each once it may be closed; resolves when the last of their connections is closed. */
    async close(mayClose: (socket: SocketServer) => Promise<unknown> = async () => {}) {
      closed ??= Promise.all(
        sockets.map(async socket => {
          await mayClose(socket)
          await once(socket.close(), 'close')
        }),
      )
      await closed
    },
  }
}

/** Listens on all of them. */
export async function listenOnSockets(server: Server, place: Place): Promise<MoreSockets> {
  const shared = await sharedPlace(place)
  await once(server.listen(shared), 'listening')
  return openMoreSockets(server, shared)
}

export type MoreSockets = Awaited<ReturnType<typeof openMoreSockets>>

export const noMoreSockets: MoreSockets = { isAlone: true, close: async () => {} }

/** Whether connections that wait for a socket that closes go to others on its port; null where it cannot be read. */
export async function handsOnConnections(): Promise<boolean | null> {
  const set = await readFile('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').catch(() => null)
  return set === null ? null : set.trim() === '1'
}

/** Not every system lets several sockets share a port. */
async function canShare(host: string): Promise<boolean> {
  try {
    await listenAndClose({ host, port: 0, reusePort: true })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTSUP') return false
    throw error
  }
}

async function listenAndClose(place: Place & { reusePort?: boolean }): Promise<void> {
  const socket = createServer().listen({ ...place, exclusive: true })
  await once(socket, 'listening')
  await once(socket.close(), 'close')
}
