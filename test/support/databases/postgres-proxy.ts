/** A proxy before PostgreSQL that reads along what a client sends, and can be gone like a server that was killed. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface Proxy {
  /** The same address, through the proxy. */
  url: string
  /** The types of the messages sent by clients so far, as the protocol's letters: P(arse), B(ind), E(xecute), S(ync), Q(uery). */
  messages: string[]
  /** What the server sent so far, byte by byte. */
  answers: string[]
  /** Ends every connection at once, and refuses new ones. */
  fall(): Promise<void>
  /** Is there again, at the same address. */
  rise(): Promise<void>
}

export async function startProxy(t: TestContext, url: string): Promise<Proxy> {
  const target = new URL(url)
  const port = Number(target.port)
  const messages: string[] = []
  const answers: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(port, target.hostname)
    for (const socket of [client, upstream]) sockets.add(socket.once('close', () => sockets.delete(socket)))
    const read = createReader(messages)
    client.on('data', read)
    upstream.on('data', chunk => answers.push(chunk.toString('latin1')))
    client.pipe(upstream).pipe(client)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      socket.on('error', () => other.destroy())
  })
  const listen = (at: number) => new Promise<void>(resolve => server.listen(at, '127.0.0.1', resolve))
  await listen(0)
  t.after(() => {
    server.close()
    // Whoever is connected still would keep the tests from ending.
    for (const socket of sockets) socket.destroy()
  })
  target.port = String((server.address() as AddressInfo).port)
  return {
    url: target.href,
    messages,
    answers,
    async fall() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.resetAndDestroy()
      await closed
    },
    rise: () => listen(Number(target.port)),
  }
}

/** The first message has no type: it is a length and the start-up parameters. */
function createReader(messages: string[]): (chunk: Buffer) => void {
  let held = Buffer.alloc(0)
  let started = false
  return chunk => {
    held = Buffer.concat([held, chunk])
    for (;;) {
      const head = started ? 1 : 0
      if (held.length < head + 4) return
      const end = head + held.readInt32BE(head)
      if (held.length < end) return
      if (started) messages.push(held.toString('latin1', 0, 1))
      started = true
      held = held.subarray(end)
    }
  }
}
