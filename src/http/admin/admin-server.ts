/** The admin port. It is for operators, never for clients. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { errorCodes } from '../../domain/errors.ts'
import { isCustomerId, isInvoiceId } from '../../domain/invoice.ts'
import { createLinkToken, type LinkKey } from '../../sdk/link.ts'
import { maxLinkSeconds } from '../access/link-form.ts'
import { parseObject } from '../access/parse-object.ts'
import { createWindows, remainingSeconds } from '../access/windows.ts'
import { createRequestId } from '../request-id.ts'
import { securityHeaders, writeBareAnswer } from '../server/bare-answer.ts'
import type { UnreadableRequest } from '../server/connection.ts'
import { isRepeated, withoutOrigin } from '../server/find-fault.ts'
import { createGuardedServer, type EndWith, faultyRequest } from '../server/guarded-server.ts'

export interface AdminOptions {
  token: string
  /** Key that signs links. Null when this port makes no links. */
  key: LinkKey | null
  publicUrl: string | null
  /** Returns the reason why requests should go to another process. Null when the process is ready. */
  askReady(): Promise<string | null>
  writeMetrics(): Promise<string>
  log: Logger
}

interface Route {
  method: 'GET' | 'POST'
  isGuarded: boolean
  /** A text is sent as it is, an object as JSON. */
  answer(request: IncomingMessage): Promise<object | string>
}

const adminErrors = {
  ...errorCodes,
  unsupported_media_type: { status: 415 },
  not_configured: { status: 503 },
} as const

/** An error in the API's form. It uses the API's codes where they fit. */
class AdminError extends Error {
  readonly code: keyof typeof adminErrors
  readonly headers: Readonly<Record<string, string>>

  constructor(code: keyof typeof adminErrors, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.code = code
    this.headers = headers
  }

  get status(): number {
    return adminErrors[this.code].status
  }

  write(requestId: string): string {
    return JSON.stringify({ error: { code: this.code, message: this.message, request_id: requestId } })
  }
}

const prometheusType = 'text/plain; version=0.0.4; charset=utf-8'

const maxBodyBytes = 4_096
const keepAliveMs = 5_000

/** Wrong tokens that one address may send within the window. The right token is never refused because of wrong ones. */
const guesses = { max: 20, seconds: 60 }

export function createAdminServer(options: AdminOptions): Server {
  const { askReady, writeMetrics, log } = options
  const tokenGuard = new TokenGuard(options)
  const healthy = { status: 'ok' }
  const readiness = async () => {
    const problem = await askReady()
    if (problem === null) return healthy
    throw new AdminError('unavailable', problem, { 'retry-after': '1' })
  }
  const createLink: Route['answer'] = async request => createLinkFor(await readJson(request), options)
  const routes = new Map<string, Route>([
    ['/live', { method: 'GET', isGuarded: false, answer: async () => healthy }],
    ['/ready', { method: 'GET', isGuarded: false, answer: readiness }],
    ['/metrics', { method: 'GET', isGuarded: true, answer: writeMetrics }],
    ['/links', { method: 'POST', isGuarded: true, answer: createLink }],
  ])

  async function receive(
    request: IncomingMessage,
    response: ServerResponse,
    endWith: EndWith,
  ): Promise<void> {
    const requestId = createRequestId()
    const found = await answer(request, routes, tokenGuard).catch((error: unknown) => {
      if (error instanceof AdminError) return error
      log.error({ request_id: requestId, err: error }, 'unexpected error')
      return new AdminError('internal', 'Something went wrong on our side.')
    })
    if (response.destroyed) return
    const status = send(found, requestId, { request, response, endWith })
    const path = pathOf(request)
    const route = routes.has(path) ? path : null
    const { method } = request
    const client = status === 401 || status === 429 ? { client: addressOf(request) } : {}
    log.info({ request_id: requestId, port: 'admin', method, route, status, ...client }, 'request')
  }

  return createGuardedServer({
    handle: (...exchange) => void receive(...exchange),
    refuse: refuseUnreadable,
    keepAliveMs,
  })
}

/** Returns the body of the answer. Rejects with an `AdminError`. */
async function answer(
  request: IncomingMessage,
  routes: ReadonlyMap<string, Route>,
  tokenGuard: TokenGuard,
): Promise<object | string> {
  const route = routes.get(pathOf(request))
  if (route === undefined)
    throw new AdminError('route_not_found', `Served here: ${[...routes.keys()].join(', ')}.`)
  if (route.isGuarded) tokenGuard.check(request)
  const allowed = route.method === 'GET' ? 'GET, HEAD' : route.method
  if (!allowed.split(', ').includes(request.method ?? ''))
    throw new AdminError('method_not_allowed', `Allowed here: ${allowed}.`, { allow: allowed })
  return route.answer(request)
}

/** Sends the answer and returns its status. */
function send(
  found: object | string,
  requestId: string,
  exchange: { request: IncomingMessage; response: ServerResponse; endWith: EndWith },
): number {
  const { request, response, endWith } = exchange
  const refusal = found instanceof AdminError ? found : null
  const status = refusal?.status ?? 200
  const body = refusal?.write(requestId) ?? (typeof found === 'string' ? found : JSON.stringify(found))
  const headers = { 'cache-control': 'no-store', 'request-id': requestId, ...refusal?.headers }
  // The rest of the request's body is not read, so the connection cannot serve another request.
  if (!request.complete) endWith(writeBareAnswer(status, headers, body))
  else
    response
      .writeHead(status, {
        ...securityHeaders,
        'content-type': typeof found === 'string' ? prometheusType : 'application/json',
        'content-length': Buffer.byteLength(body),
        ...headers,
      })
      .end(request.method === 'HEAD' ? '' : body)
  return status
}

/** Compares tokens with ADMIN_TOKEN, and counts wrong tokens by address. */
class TokenGuard {
  private readonly expected: Buffer
  private readonly log: AdminOptions['log']
  private readonly windows = createWindows(guesses.seconds)

  constructor({ token, log }: AdminOptions) {
    this.expected = digest(token)
    this.log = log
  }

  /** Compares in constant time, so that the duration reveals nothing of ADMIN_TOKEN. */
  check(request: IncomingMessage): void {
    const { authorization } = request.headers
    if (isRepeated('authorization', request.rawHeaders))
      throw new AdminError('invalid_request', 'Send the Authorization header once.')
    if (authorization === undefined)
      throw new AdminError('missing_token', 'Send ADMIN_TOKEN in the header Authorization: Bearer <token>.', {
        'www-authenticate': 'Bearer realm="fatura-admin"',
      })
    const [, given = ''] = /^bearer +(\S+) *$/i.exec(authorization) ?? []
    if (timingSafeEqual(digest(given), this.expected)) return
    this.countGuess(addressOf(request))
    throw new AdminError('invalid_token', 'The token is not ADMIN_TOKEN.', {
      'www-authenticate': 'Bearer realm="fatura-admin", error="invalid_token"',
    })
  }

  /** Throws `rate_limited` when the address sent too many wrong tokens. */
  private countGuess(client: string): void {
    const { log } = this
    const nowMs = performance.now()
    const window = this.windows.add(client, nowMs)
    if (window.count <= guesses.max) return
    if (window.count === guesses.max + 1) log.warn({ client }, 'an address sent too many wrong ADMIN_TOKENs')
    const message = `This address sent ${guesses.max} wrong tokens within ${guesses.seconds} s.`
    throw new AdminError('rate_limited', message, { 'retry-after': String(remainingSeconds(window, nowMs)) })
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  return withoutOrigin(url).split('?')[0] ?? ''
}

/**
 * Returns the client's IP address. An IPv4 address loses the prefix `::ffff:`, which it has where the port listens on
 * IPv4 and IPv6.
 */
function addressOf({ socket }: IncomingMessage): string {
  return (socket.remoteAddress ?? '').replace(/^::ffff:(?=[\d.]+$)/, '')
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

async function readJson(request: IncomingMessage): Promise<string> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json(?: *;.*)?$/i.test(type))
    throw new AdminError('unsupported_media_type', 'Send the body as Content-Type: application/json.')
  const tooLarge = new AdminError('payload_too_large', `The body is larger than ${maxBodyBytes} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge
  const chunks: Buffer[] = []
  let length = 0
  try {
    // A body that is too large is not read to its end, but still gets an answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > maxBodyBytes) break
      chunks.push(chunk)
    }
  } catch {
    throw new AdminError('invalid_request', 'The body did not arrive completely.')
  }
  if (length > maxBodyBytes) throw tooLarge
  return Buffer.concat(chunks).toString()
}

const members = ['customer', 'invoice', 'ttl']

/** Creates a link from the JSON text of a request's body, for backends that cannot sign links themselves. */
async function createLinkFor(body: string, { key, publicUrl }: AdminOptions): Promise<object> {
  const request = readBody(body)
  if (key === null || publicUrl === null)
    throw new AdminError(
      'not_configured',
      'Links cannot be made. Start the service with CUSTOMER_LINK_KEY (printed by "fatura key add") and with PUBLIC_URL.',
    )
  const { token, expires_at } = await createLinkToken({ key, publicUrl, ...request })
  return { url: `${publicUrl}/#t=${token}`, expires_at }
}

function readBody(text: string) {
  const body = parseObject(text)
  if (body === null)
    throw refuse(
      'The body must be a JSON object, such as {"customer":"cus_ana"}, that names no member twice.',
    )
  const unknown = Object.keys(body).find(name => !members.includes(name))
  if (unknown !== undefined) throw refuse(`The body may hold ${members.join(', ')}, and nothing else.`)
  const { customer, invoice, ttl } = body
  if (typeof customer !== 'string' || !isCustomerId(customer))
    throw refuse('customer must be an ID that begins with cus_.')
  if (invoice !== undefined && (typeof invoice !== 'string' || !isInvoiceId(invoice)))
    throw refuse('invoice must be an ID that begins with in_, or be left out.')
  if (ttl !== undefined && !(Number.isInteger(ttl) && Number(ttl) >= 1 && Number(ttl) <= maxLinkSeconds))
    throw refuse(`ttl must be a whole number of seconds from 1 to ${maxLinkSeconds}, or be left out.`)
  return { customer, invoice, ttlSeconds: ttl as number | undefined }
}

function refuse(message: string): AdminError {
  return new AdminError('invalid_request', message)
}

function refuseUnreadable({ code, message }: UnreadableRequest): string {
  const requestId = createRequestId()
  const error = code === faultyRequest ? refuse(message) : explain(code)
  return writeBareAnswer(
    error.status,
    { 'cache-control': 'no-store', 'request-id': requestId, ...error.headers },
    error.write(requestId),
  )
}

function explain(code: string | undefined): AdminError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new AdminError('request_timeout', 'The request did not arrive completely in time.')
  if (code === 'HPE_HEADER_OVERFLOW')
    return new AdminError('headers_too_large', 'The request headers are larger than 16 KiB.')
  return new AdminError('invalid_request', 'This is not a valid HTTP/1.1 request.')
}
