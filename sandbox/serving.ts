/** What the local services share: a port, a second one where redirects lead, the rate, and their own addresses. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from '../src/node-http.ts'
import type { ActiveFault } from './faults.ts'
import { type Answer, sendSpoilt, spoilBody, type WriteError } from './spoil.ts'

export interface ServingOptions {
  host: string
  /** 0 takes a free one. */
  port: number
  /** What whoever follows a redirect is answered with, unless it is a PDF. */
  empty: object
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
}

export interface Serving {
  /** As in http://127.0.0.1:4010. */
  address: string
  /** Requests served so far, by route name; `redirected` counts who followed a redirect. */
  requests: Map<string, number>
  count(name: string): void
  /** Sends the answer, spoilt by the fault if there is one. */
  send(response: ServerResponse, answer: Answer, spoiling?: Spoiling): Promise<void>
  close(): Promise<void>
}

export interface Spoiling {
  fault: ActiveFault
  path: string
  writeError: WriteError
}

export async function startServing({ host, port, empty, handle }: ServingOptions): Promise<Serving> {
  const requests = new Map<string, number>()
  const count = (name: string) => requests.set(name, (requests.get(name) ?? 0) + 1)
  const server = createServer((request, response) => {
    handle(request, response).catch(error => response.destroy(error))
  })
  const elsewhere = createServer((request, response) => {
    count('redirected')
    if (/\.pdf($|\?)/.test(request.url ?? ''))
      response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4\n%%EOF\n')
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(empty))
  })
  await listen(elsewhere, host, 0)
  await listen(server, host, port).catch(async error => {
    await close(elsewhere)
    throw error
  })
  return {
    address: addressOf(server, host),
    requests,
    count,
    async send(response, answer, spoiling) {
      if (spoiling === undefined) {
        const { status, type, body } = answer
        response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
        return
      }
      const { fault, path, writeError } = spoiling
      const target = `${addressOf(elsewhere, host)}${path}`
      await sendSpoilt(response, spoilBody(answer, fault), fault, target, writeError)
    },
    async close() {
      await Promise.all([server, elsewhere].map(close))
    },
  }
}

/** Whether one more request fits into the span that just passed, in milliseconds. */
export function createTurns(rate: number | null, span: number): () => boolean {
  const served: number[] = []
  return () => {
    if (rate === null) return true
    const now = performance.now()
    while (served[0] !== undefined && served[0] <= now - span) served.shift()
    if (served.length >= rate) return false
    served.push(now)
    return true
  }
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

/** Whoever is still connected is cut off. */
function close(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

function addressOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
