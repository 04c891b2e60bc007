/** A local Stripe on its own port. Stripe's official client works with it unchanged, and it can fail on demand. */
import type { IncomingMessage } from 'node:http'
import { createFaults, type Fault, type RouteName } from '../faults.ts'
import { createRandom, letters } from '../random.ts'
import { type Call, createRateLimit, type Serving, type ServingOptions, startServing } from '../serving.ts'
import { type Answer, pdfAnswer, type SandboxError } from '../spoil.ts'
import { type AccountOptions, createAccount, type StripeAccount } from './account.ts'
import { type Controlled, stripeControls } from './control.ts'
import { apiVersion } from './objects.ts'
import { readQuery, stripeError } from './query.ts'
import { renderEvent, type World, writeInMode } from './render.ts'
import { type Permission, type Route, routes } from './routes.ts'
import { createWebhooks } from './webhooks.ts'

/** Accepted keys: a secret and a restricted key for each mode. */
export const sandboxKeys = ['sk_test_sandbox', 'rk_test_sandbox', 'sk_live_sandbox', 'rk_live_sandbox']

export interface SandboxOptions extends AccountOptions, ServingOptions {
  /** An existing account. The other account options are then ignored. */
  account?: StripeAccount
  /** The only accepted key. By default each of `sandboxKeys` is accepted. Requests with a live key see live objects. */
  apiKey?: string
  /** Account ID. Default: acct_1SandboxFatura. */
  accountId?: string
  /** Requests per second before a 429. Null means no limit. */
  ratePerSecond?: number | null
  /** Requests per second and endpoint before a 429. Stripe has both limits. */
  ratePerEndpoint?: number | null
  /** Permissions that the key lacks, for the test of a restricted key. */
  forbidden?: readonly Permission[]
  /** Whether a line's subtotal includes a tax that its price includes. Default: with_tax. */
  subtotals?: World['subtotals']
}

export interface StripeSandbox extends Serving, Controlled {}

export async function startStripeSandbox(options: SandboxOptions = {}): Promise<StripeSandbox> {
  const { seed = 1, chaos = 0, accountId = 'acct_1SandboxFatura', subtotals = 'with_tax' } = options
  const account = options.account ?? createAccount(options)
  const faults = createFaults<Fault, RouteName>(createRandom(seed ^ 0x3c6ef372))
  faults.setChaos(chaos)
  const forbidden = new Set(options.forbidden)
  const random = createRandom(seed ^ 0x5bd1e995)
  const isWithinRate = createRateLimit(options.ratePerSecond ?? null, 1_000)
  const isWithinEndpointRate = new Map<string, () => boolean>(
    routes.map(({ name }) => [name, createRateLimit(options.ratePerEndpoint ?? null, 1_000)]),
  )
  const { subscribe, deliver, endpoint } = createWebhooks(random, account.events, event =>
    JSON.parse(writeInMode(renderEvent(world, event), isLive(options.apiKey))),
  )
  const world: World = { account, accountId, address: '', endpoint, subtotals }

  function answer({ request, method, url, route, fault }: Call<Route>): Answer {
    const key = keyOf(request)
    if (!route?.isOpen) checkKey(key, options.apiKey)
    checkVersion(request)
    if (!isWithinRate() || isWithinEndpointRate.get(route?.name ?? '')?.() === false)
      throw stripeError(429, 'Request rate limit exceeded.', 'rate_limit')
    if (route === undefined) throw stripeError(404, `Unrecognized request URL (${method}: ${url.pathname}).`)
    if (route.permission !== undefined && forbidden.has(route.permission))
      throw notPermitted(key, route.permission)
    // With the fault `looping_page`, the cursor is removed, so that every page is the first page.
    if (fault?.fault === 'looping_page')
      for (const cursor of ['starting_after', 'ending_before']) url.searchParams.delete(cursor)
    const [, id = '', secret = ''] = route.path.exec(url.pathname) ?? []
    const query = readQuery(url.searchParams, route.parameters, route.expandable)
    // Expanding an object needs the permission to read that object.
    if (query.expands('payments') && forbidden.has('invoice_payments'))
      throw notPermitted(key, 'invoice_payments')
    const made = route.answer(world, query, decodeURIComponent(id), secret)
    if (Buffer.isBuffer(made)) return pdfAnswer(made)
    if (typeof made === 'string')
      return { status: 200, type: 'text/html; charset=utf-8', body: Buffer.from(made) }
    return { status: 200, type: 'application/json', body: Buffer.from(writeInMode(made, isLive(key))) }
  }

  const service = {
    routes,
    faults,
    controls: stripeControls,
    controlled: () => sandbox,
    headers: () => ({
      'request-id': `req_${letters(random, 14)}`,
      date: new Date(account.clock * 1000).toUTCString(),
      'stripe-version': apiVersion,
    }),
    answer,
    writeError,
    empty: { object: 'list', data: [] },
  }
  const serving = await startServing(service, options)
  world.address = serving.address
  const sandbox: StripeSandbox = { ...serving, account, faults, forbidden, deliver, subscribe }
  return sandbox
}

function writeError(status: number, message: string): object {
  const error = { type: 'invalid_request_error', code: 'rate_limit', message }
  return { error: status === 429 ? error : { type: 'api_error', message } }
}

function notPermitted(key: string | null, permission: Permission): SandboxError {
  const right = `rak_${permission.replace(/s$/, '')}_read`
  return stripeError(
    403,
    `The provided key '${key?.slice(0, 8)}****' does not have the required permissions for this endpoint. ` +
      `Having the '${right}' permission would allow this request to continue.`,
  )
}

/** Reads the key from bearer authentication, or from the user name of basic authentication. */
function keyOf({ headers }: IncomingMessage): string | null {
  const [, scheme = '', value = ''] = /^(\w+) +(\S+)$/.exec(headers.authorization ?? '') ?? []
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() === 'basic') return Buffer.from(value, 'base64').toString().split(':')[0] ?? null
  return null
}

function checkKey(key: string | null, expected: string | undefined): void {
  if (key === null) throw stripeError(401, 'You did not provide an API key.')
  if (expected === undefined ? !sandboxKeys.includes(key) : key !== expected)
    throw stripeError(401, `Invalid API Key provided: ${key.slice(0, 7)}****`)
}

function isLive(key: string | null | undefined): boolean {
  return /^[sr]k_live_/.test(key ?? '')
}

/** Refuses other API versions, because the objects exist in one version only. */
function checkVersion({ headers }: IncomingMessage): void {
  const asked = headers['stripe-version'] ?? apiVersion
  if (asked !== apiVersion)
    throw stripeError(400, `Invalid Stripe API version: ${asked}. Here it is ${apiVersion}.`)
}
