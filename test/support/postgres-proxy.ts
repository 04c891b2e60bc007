/** A proxy before PostgreSQL that reads along what a client sends. */
import { type AddressInfo, connect, createServer } from 'node:net'
import type { TestContext } from 'node:test'

export interface Proxy {
  /** The same address, through the proxy. */
  url: string
  /** The types of the messages sent by clients so far, as the protocol's letters: P(arse), B(ind), E(xecute), S(ync), Q(uery). */
  messages: string[]
  /** What the server sent so far, byte by byte. */
  answers: string[]
}

export async function startProxy(t: TestContext, url: string): Promise<Proxy> {
  const target = new URL(url)
  const port = Number(target.port)
  const messages: string[] = []
  const answers: string[] = []
  const server = createServer(client => {
    const upstream = connect(port, target.hostname)
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
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  target.port = String((server.address() as AddressInfo).port)
  return { url: target.href, messages, answers }
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
