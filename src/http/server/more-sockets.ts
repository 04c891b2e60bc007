/**
 * Opens several listening sockets on a server's port. The event loop accepts one connection of each socket in a turn.
 * With a single socket, a client that makes turns long and opens many connections would keep new clients out.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer, type Server as SocketServer } from 'node:net'

const socketsInAll = 32

interface Address {
  host: string
  port: number
}

/** How a server listens. `isAlone` is true when no other program listens on the port. */
interface SharedAddress extends Address {
  reusePort: boolean
  isAlone: boolean
}

/**
 * Returns how a server must listen so that more sockets can join its port. Unless `withOthers` is true, throws like
 * `listen` when the port is taken. This check is needed because the system lets two programs of one user share a port
 * when both ask for it.
 */
export async function sharedAddress(address: Address, withOthers = false): Promise<SharedAddress> {
  if (withOthers) return { ...address, reusePort: true, isAlone: false }
  // With port 0, the system chooses a free port.
  if (address.port !== 0) await listenAndClose(address)
  return { ...address, reusePort: await canSharePorts(address.host), isAlone: true }
}

/**
 * Opens more sockets on the port of a listening server, if the result of `sharedAddress` allows it. `close` closes
 * them.
 */
export async function openMoreSockets(
  server: Server,
  { reusePort, isAlone }: Pick<SharedAddress, 'reusePort' | 'isAlone'>,
) {
  const sockets: SocketServer[] = []
  const bound = server.address()
  if (reusePort && bound !== null && typeof bound === 'object')
    while (sockets.length < socketsInAll - 1) {
      // Node's HTTP server opens its own socket with the same options.
      const socket = createServer({ allowHalfOpen: true, noDelay: true })
      socket.on('connection', connection => server.emit('connection', connection))
      sockets.push(socket)
      socket.listen({ host: bound.address, port: bound.port, reusePort })
      await once(socket, 'listening')
    }
  let closed: Promise<unknown> | undefined
  return {
    isAlone,
    /**
     * Closes each socket when `mayClose` resolves for it. Resolves when the last connection of all sockets is closed.
     */
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

export async function listenOnSockets(server: Server, address: Address): Promise<MoreSockets> {
  const shared = await sharedAddress(address)
  await once(server.listen(shared), 'listening')
  return openMoreSockets(server, shared)
}

export type MoreSockets = Awaited<ReturnType<typeof openMoreSockets>>

export const noMoreSockets: MoreSockets = { isAlone: true, close: async () => {} }

/**
 * Whether the system passes connections that wait for a closing socket to other sockets on the same port. Null where
 * the setting cannot be read.
 */
export async function handsOnConnections(): Promise<boolean | null> {
  const set = await readFile('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').catch(() => null)
  return set === null ? null : set.trim() === '1'
}

async function canSharePorts(host: string): Promise<boolean> {
  try {
    await listenAndClose({ host, port: 0, reusePort: true })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTSUP') return false
    throw error
  }
}

async function listenAndClose(address: Address & { reusePort?: boolean }): Promise<void> {
  const socket = createServer().listen({ ...address, exclusive: true })
  await once(socket, 'listening')
  await once(socket.close(), 'close')
}
