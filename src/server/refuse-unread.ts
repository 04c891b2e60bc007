import type { NonSharedBuffer } from 'node:buffer'
import type { Connection } from './connection.ts'

/**
 * A whole request in one piece that has no body and keeps its connection, and nothing behind it. Node's parser reads any
 * other.
 */
const plainRequest =
  /^GET (\/\S*) HTTP\/1\.1\r\n(?:(?!content-length:|transfer-encoding:|connection:|upgrade:|expect:)[\w-]+: [\x20-\x7e]*\r\n)+\r\n$/i

/**
 * Looks at each request of this connection before Node reads it: to read and answer a request by Node's means costs more than
 * twice as much as to refuse it. A request that is not refused is read as before, a little slower. `isShedding` tells whether
 * requests are being refused, so that a look is worth it; `refuse` gives the whole answer to a request for this path, of this
 * head, which keeps the connection open, or null when it is to be read and served.
 */
export function refuseUnread(
  connection: Connection,
  isShedding: () => boolean,
  refuse: (path: string, head: string) => string | null,
): void {
  const { socket } = connection
  const listeners = socket.listeners('data')
  /** Whether the parser is known to stand between two requests. */
  let isBetween = false
  const pass = (chunk: NonSharedBuffer) => {
    for (const listener of listeners) listener.call(socket, chunk)
  }
  for (const listener of listeners) socket.off('data', listener as () => void)
  socket.on('data', (chunk: NonSharedBuffer) => {
    // Node takes its listener off, and gives the parser to another connection.
    if (connection.isOver()) return
    if (!isShedding()) {
      isBetween = false
      pass(chunk)
      return
    }
    const head = chunk.toString('latin1')
    const path = plainRequest.exec(head)?.[1]
    if (isBetween && path !== undefined && socket.writableLength === 0 && connection.isIdle()) {
      const answer = refuse(path, head)
      if (answer !== null) {
        socket.write(answer, 'latin1')
        connection.bytesRead = socket.bytesRead
        return
      }
    }
    const before = connection.latest
    pass(chunk)
    // One that Node read to its end, in a piece that ends with the only end of a head in it: nothing is left over.
    const { latest } = connection
    isBetween = path !== undefined && latest !== before && latest?.complete === true
  })
}
