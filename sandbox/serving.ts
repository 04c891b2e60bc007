/** The HTTP server of both local services: routes, faults, control addresses, and a second port as target of redirects. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer } from '../src/sources/calls/node-http.ts'
import { answerControl, type Control, controlPath } from './control.ts'
import type { ActiveFault } from './faults.ts'
import { type Answer, answerOrError, sendSpoilt, spoilBody, type WriteError } from './spoil.ts'

export interface ServingOptions {
  /** Port of the service. 0 chooses a free port. Default: 0. */
  port?: number
  host?: string
  latencyMs?: number
  /** Share of requests that fail by a random fault, from 0 to 1. */
  chaos?: number
  seed?: number
}

export interface Serving {
  /** Base address, for example http://127.0.0.1:4010. */
  address: string
  /** Number of requests by route. `redirected` counts redirects that a client followed. */
  requests: Map<string, number>
  close(): Promise<void>
}

export interface ServedRoute {
  name: string
  path: RegExp
  method?: 'POST'
  /** True for a route that needs no key, because its address contains a secret. */
  isOpen?: true
}

export interface Call<Route> {
  request: IncomingMessage
  method: string
  url: URL
  route: Route | undefined
  fault: ActiveFault | null
}

export interface Service<Route, Controlled> {
  routes: readonly Route[]
  faults: { take(route: string): ActiveFault | null }
  controls: Record<string, Control<Controlled>>
  controlled(): Controlled
  headers(): Record<string, string>
  answer(call: Call<Route>): Answer
  writeError: WriteError
  /** Body of the answer after a redirect, except for PDFs. */
  empty: object
}

export async function startServing<Route extends ServedRoute, Controlled>(
  service: Service<Route, Controlled>,
  { host = '127.0.0.1', port = 0, latencyMs = 0 }: ServingOptions,
): Promise<Serving> {
  const { writeError } = service
  const requests = new Map<string, number>()
  const count = (name: string) => requests.set(name, (requests.get(name) ?? 0) + 1)

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(service.headers())) response.setHeader(name, value)
    const method = request.method ?? 'GET'
    const url = new URL(request.url ?? '/', 'http://sandbox')
    const path = url.pathname
    if (path.startsWith(controlPath))
      return send(response, await answerControl(service.controls, service.controlled(), method, url))
    const route = service.routes.find(route => route.path.test(path) && (route.method ?? 'GET') === method)
    if (route !== undefined) count(route.name)
    const fault = route === undefined ? null : service.faults.take(route.name)
    // The answer is computed before the latency, so it shows the state at the time of the request.
    const answer = await answerOrError(
      () => service.answer({ request, method, url, route, fault }),
      writeError,
    )
    if (latencyMs > 0) await sleep(latencyMs)
    if (fault === null) return send(response, answer)
    const target = `${addressOf(redirected, host)}${path}`
    await sendSpoilt(response, spoilBody(answer, fault), fault, target, writeError)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(error => response.destroy(error))
  })
  const redirected = createServer((request, response) => {
    count('redirected')
    if (/\.pdf($|\?)/.test(request.url ?? ''))
      response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4\n%%EOF\n')
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(service.empty))
  })
  await listen(redirected, host, 0)
  await listen(server, host, port).catch(async error => {
    await close(redirected)
    throw error
  })
  return {
    address: addressOf(server, host),
    requests,
    async close() {
      await Promise.all([server, redirected].map(close))
    },
  }
}

function send(response: ServerResponse, { status, type, body }: Answer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
}

/** Returns a function that says whether one more request is within the limit for the last `spanMs`. */
export function createRateLimit(rate: number | null, spanMs: number): () => boolean {
  const served: number[] = []
  return () => {
    if (rate === null) return true
    const now = performance.now()
    while (served[0] !== undefined && served[0] <= now - spanMs) served.shift()
    if (served.length >= rate) return false
    served.push(now)
    return true
  }
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

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
