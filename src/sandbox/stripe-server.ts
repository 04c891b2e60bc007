/** A local Stripe on a port of its own: what the official client needs to work unchanged, and a way to make it fail. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { control } from './control.ts'
import { type ActiveFault, type Answer, createFaults, type Faults, sendSpoilt, spoilBody } from './faults.ts'
import { createRandom, letters } from './random.ts'
import { type AccountOptions, createAccount, type StripeAccount } from './stripe-account.ts'
import { apiVersion } from './stripe-objects.ts'
import { readQuery, StripeError } from './stripe-query.ts'
import { type Route, renderEvent, routes, type World } from './stripe-routes.ts'
import { createWebhooks, type DeliverOptions, type Delivery } from './webhooks.ts'

export interface SandboxOptions extends AccountOptions {
  /** An account made before; the others of its options do not matter then. */
  account?: StripeAccount
  /** 0 or nothing takes a free one. */
  port?: number
  host?: string
  /** The only key that is accepted; without it, all that look like one. */
  apiKey?: string
  /** Requests a second before 429; null for as many as come. */
  ratePerSecond?: number | null
}

export interface StripeSandbox {
  /** As in http://127.0.0.1:4010. */
  address: string
  account: StripeAccount
  faults: Faults
  /** Requests served so far, by route name; `redirected` counts who followed a redirect. */
  requests: Map<string, number>
  /** Signs the events and posts them to the subscriber, one after the other. What is refused comes again next time. */
  deliver(options?: DeliverOptions): Promise<Delivery[]>
  subscribe(url: string, secret: string): void
  close(): Promise<void>
}

export async function startStripeSandbox(options: SandboxOptions = {}): Promise<StripeSandbox> {
  const { host = '127.0.0.1', port = 0, seed = 1 } = options
  const account = options.account ?? createAccount(options)
  const faults = createFaults()
  const requests = new Map<string, number>()
  const world: World = { account, address: '' }
  const random = createRandom(seed ^ 0x5bd1e995)
  const count = (name: string) => requests.set(name, (requests.get(name) ?? 0) + 1)
  const hasTurn = createTurns(options.ratePerSecond ?? null)

  const server = createServer((request, response) => {
    response.setHeader('request-id', `req_${letters(random, 14)}`)
    response.setHeader('date', new Date(account.clock * 1000).toUTCString())
    response.setHeader('stripe-version', request.headers['stripe-version'] ?? apiVersion)
    serve(request, response).catch(error => response.destroy(error))
  })
  // Whoever follows a redirect arrives here, and is counted.
  const elsewhere = createServer((request, response) => {
    count('redirected')
    if (request.url?.startsWith('/pdf/'))
      response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4\n%%EOF\n')
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}')
  })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? 'GET'
    const url = new URL(request.url ?? '/', 'http://sandbox')
    if (url.pathname.startsWith('/_sandbox/'))
      return send(response, await attempt(() => control(sandbox, method, url)))
    const route = method === 'GET' ? routes.find(({ path }) => path.test(url.pathname)) : undefined
    if (route !== undefined) count(route.name)
    const fault = route === undefined ? null : faults.take(route.name)
    const answer = await attempt(() => {
      const key = keyOf(request)
      if (!route?.isOpen) checkKey(key, options.apiKey)
      if (!hasTurn())
        throw new StripeError(429, { code: 'rate_limit', message: 'Request rate limit exceeded.' })
      if (route === undefined)
        throw new StripeError(404, { message: `Unrecognized request URL (${method}: ${url.pathname}).` })
      return answerRoute(world, route, url, fault)
    })
    if (fault === null) send(response, answer)
    else await sendSpoilt(response, spoilBody(answer, fault), fault, redirectTo(fault, url))
  }

  function redirectTo({ fault }: ActiveFault, url: URL): string {
    return fault === 'redirect' ? `${addressOf(elsewhere, host)}${url.pathname}` : url.pathname
  }

  const { deliver, subscribe } = createWebhooks(random, account.events, event => renderEvent(world, event))
  const sandbox: StripeSandbox = {
    address: '',
    account,
    faults,
    requests,
    deliver,
    subscribe,
    async close() {
      await Promise.all([server, elsewhere].map(close))
    },
  }
  await listen(elsewhere, host, 0)
  await listen(server, host, port).catch(async error => {
    await close(elsewhere)
    throw error
  })
  sandbox.address = world.address = addressOf(server, host)
  return sandbox
}

function answerRoute(world: World, route: Route, url: URL, fault: ActiveFault | null): object | Buffer {
  const search = url.searchParams
  // The same page for ever: the first one.
  if (fault?.fault === 'looping_page')
    for (const cursor of ['starting_after', 'ending_before']) search.delete(cursor)
  const [, id = '', secret = ''] = route.path.exec(url.pathname) ?? []
  return route.answer(world, readQuery(search, route.parameters), decodeURIComponent(id), secret)
}

async function attempt(make: () => object | Buffer | Promise<object>): Promise<Answer> {
  try {
    const made = await make()
    if (Buffer.isBuffer(made)) return { status: 200, type: 'application/pdf', body: made }
    return { status: 200, type: 'application/json', body: Buffer.from(JSON.stringify(made)) }
  } catch (error) {
    const known = error instanceof StripeError
    const body = known ? error.body : { type: 'api_error', message: String(error) }
    return {
      status: known ? error.status : 500,
      type: 'application/json',
      body: Buffer.from(JSON.stringify({ error: body })),
    }
  }
}

function send(response: ServerResponse, { status, type, body }: Answer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
}

/** As a bearer, or as the name of basic authentication. */
function keyOf({ headers }: IncomingMessage): string | null {
  const [, scheme = '', value = ''] = /^(\w+) +(\S+)$/.exec(headers.authorization ?? '') ?? []
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() === 'basic') return Buffer.from(value, 'base64').toString().split(':')[0] ?? null
  return null
}

function checkKey(key: string | null, expected: string | undefined): void {
  if (key === null) throw new StripeError(401, { message: 'You did not provide an API key.' })
  if (expected === undefined ? !/^[sr]k_/.test(key) : key !== expected)
    throw new StripeError(401, { message: `Invalid API Key provided: ${key.slice(0, 7)}****` })
}

/** Whether one more request fits into the second that just passed. */
function createTurns(rate: number | null): () => boolean {
  const served: number[] = []
  return () => {
    if (rate === null) return true
    const now = performance.now()
    while (served[0] !== undefined && served[0] <= now - 1_000) served.shift()
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
