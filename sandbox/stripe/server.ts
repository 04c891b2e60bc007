/** A local Stripe on a port of its own: what the official client needs to work unchanged, and a way to make it fail. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerControl, controlPath } from '../control.ts'
import { type ActiveFault, createFaults, type Fault, type Faults, type RouteName } from '../faults.ts'
import { createRandom, letters } from '../random.ts'
import { createTurns, startServing } from '../serving.ts'
import { type Answer, jsonAnswer } from '../spoil.ts'
import { type AccountOptions, createAccount, type StripeAccount } from './account.ts'
import { stripeControls } from './control.ts'
import { apiVersion } from './objects.ts'
import type { Permission } from './permissions.ts'
import { readQuery, StripeError } from './query.ts'
import { renderEvent, type World, writeInMode } from './render.ts'
import { type Route, routes } from './routes.ts'
import { createWebhooks, type DeliverOptions, type Delivery } from './webhooks.ts'

/** One of each kind and mode. */
export const sandboxKeys = ['sk_test_sandbox', 'rk_test_sandbox', 'sk_live_sandbox', 'rk_live_sandbox']

export interface SandboxOptions extends AccountOptions {
  /** An account made before; the others of its options do not matter then. */
  account?: StripeAccount
  /** 0 or nothing takes a free one. */
  port?: number
  host?: string
  /** The only key that is accepted; without it, each of `sandboxKeys`. A live key sees live objects. */
  apiKey?: string
  /** What the account is called: acct_1SandboxFatura when not given. */
  accountId?: string
  /** Requests a second before 429; null for as many as come. */
  ratePerSecond?: number | null
  /** The same for each endpoint alone: Stripe has both limits. */
  ratePerEndpoint?: number | null
  /** How long each answer takes, in milliseconds. */
  latency?: number
  /** The share of requests that a random fault spoils, from 0 to 1. */
  chaos?: number
  /** What the key may not read, as a restricted one. */
  forbidden?: readonly Permission[]
}

export interface StripeSandbox {
  /** As in http://127.0.0.1:4010. */
  address: string
  account: StripeAccount
  faults: Faults
  /** What the key may not read; may be changed at any time. */
  forbidden: Set<Permission>
  /** Requests served so far, by route name; `redirected` counts who followed a redirect. */
  requests: Map<string, number>
  /** Signs the events and posts them to the subscriber, one after the other. What is refused comes again next time. */
  deliver(options?: DeliverOptions): Promise<Delivery[]>
  subscribe(url: string, secret: string): void
  close(): Promise<void>
}

export async function startStripeSandbox(options: SandboxOptions = {}): Promise<StripeSandbox> {
  const { host = '127.0.0.1', port = 0, seed = 1, chaos = 0 } = options
  const account = options.account ?? createAccount(options)
  const faults = createFaults<Fault, RouteName>(createRandom(seed ^ 0x3c6ef372))
  faults.setChaos(chaos)
  const forbidden = new Set(options.forbidden)
  const random = createRandom(seed ^ 0x5bd1e995)
  const hasTurn = createTurns(options.ratePerSecond ?? null, 1_000)
  const endpointTurns = new Map<string, () => boolean>(
    routes.map(({ name }) => [name, createTurns(options.ratePerEndpoint ?? null, 1_000)]),
  )
  const webhooks = createWebhooks(random, account.events, event =>
    JSON.parse(writeInMode(renderEvent(world, event), isLive(options.apiKey))),
  )
  const { accountId = 'acct_1SandboxFatura' } = options
  const world: World = { account, accountId, address: '', endpoint: webhooks.endpoint }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('request-id', `req_${letters(random, 14)}`)
    response.setHeader('date', new Date(account.clock * 1000).toUTCString())
    response.setHeader('stripe-version', apiVersion)
    const method = request.method ?? 'GET'
    const url = new URL(request.url ?? '/', 'http://sandbox')
    const path = url.pathname
    if (path.startsWith(controlPath))
      return serving.send(response, await answerControl(stripeControls, sandbox, method, url))
    const route = method === 'GET' ? routes.find(route => route.path.test(path)) : undefined
    if (route !== undefined) serving.count(route.name)
    const fault = route === undefined ? null : faults.take(route.name)
    // It is answered with what is true now; the rest is the way.
    const answer = attempt(() => {
      const key = keyOf(request)
      if (!route?.isOpen) checkKey(key, options.apiKey)
      checkVersion(request)
      if (!hasTurn() || endpointTurns.get(route?.name ?? '')?.() === false)
        throw new StripeError(429, { code: 'rate_limit', message: 'Request rate limit exceeded.' })
      if (route === undefined)
        throw new StripeError(404, { message: `Unrecognized request URL (${method}: ${path}).` })
      if (route.permission !== undefined && forbidden.has(route.permission))
        throw notPermitted(key, route.permission)
      const made = answerRoute(world, route, url, fault)
      return Buffer.isBuffer(made) ? made : writeInMode(made, isLive(key))
    })
    if (options.latency) await sleep(options.latency)
    await serving.send(response, answer, fault === null ? undefined : { fault, path, writeError })
  }

  const empty = { object: 'list', data: [] }
  const serving = await startServing({ host, port, empty, handle })
  world.address = serving.address
  const sandbox: StripeSandbox = {
    address: serving.address,
    account,
    faults,
    forbidden,
    requests: serving.requests,
    deliver: webhooks.deliver,
    subscribe: webhooks.subscribe,
    close: serving.close,
  }
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

function attempt(make: () => string | Buffer): Answer {
  try {
    const made = make()
    if (Buffer.isBuffer(made)) return { status: 200, type: 'application/pdf', body: made }
    return { status: 200, type: 'application/json', body: Buffer.from(made) }
  } catch (error) {
    if (error instanceof StripeError) return jsonAnswer(error.status, { error: error.body })
    return jsonAnswer(500, writeError(500, String(error)))
  }
}

function writeError(status: number, message: string): object {
  const error = { type: 'invalid_request_error', code: 'rate_limit', message }
  return { error: status === 429 ? error : { type: 'api_error', message } }
}

function notPermitted(key: string | null, permission: Permission): StripeError {
  const right = `rak_${permission.replace(/s$/, '')}_read`
  return new StripeError(403, {
    message:
      `The provided key '${key?.slice(0, 8)}****' does not have the required permissions for this endpoint. ` +
      `Having the '${right}' permission would allow this request to continue.`,
  })
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
  if (expected === undefined ? !sandboxKeys.includes(key) : key !== expected)
    throw new StripeError(401, { message: `Invalid API Key provided: ${key.slice(0, 7)}****` })
}

/** Whether it is a key for the objects that are about real money. */
function isLive(key: string | null | undefined): boolean {
  return /^[sr]k_live_/.test(key ?? '')
}

/** Objects are here in one version: who asks for another would be sent what it does not expect. */
function checkVersion({ headers }: IncomingMessage): void {
  const asked = headers['stripe-version'] ?? apiVersion
  if (asked !== apiVersion)
    throw new StripeError(400, { message: `Invalid Stripe API version: ${asked}. Here it is ${apiVersion}.` })
}
