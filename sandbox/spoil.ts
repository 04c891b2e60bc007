/** Answers of the local services, and the ways in which faults spoil them. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ActiveFault, DocumentFault } from './faults.ts'

/** An answer that is ready to be sent. */
export interface Answer {
  status: number
  type: string
  body: Buffer
}

export function jsonAnswer(status: number, value: object): Answer {
  return { status, type: 'application/json', body: Buffer.from(JSON.stringify(value)) }
}

export function pdfAnswer(body: Buffer): Answer {
  return { status: 200, type: 'application/pdf', body }
}

/** An error's body in the shape of the imitated service. */
export type WriteError = (status: number, message: string) => object

/** An error to answer with; its body is written by the service unless it is given. */
export class SandboxError extends Error {
  readonly status: number
  readonly body: object | undefined

  constructor(status: number, message: string, body?: object) {
    super(message)
    this.status = status
    this.body = body
  }
}

export async function answerOrError(
  make: () => Answer | Promise<Answer>,
  writeError: WriteError,
): Promise<Answer> {
  try {
    return await make()
  } catch (error) {
    const { status, message, body } =
      error instanceof SandboxError ? error : new SandboxError(500, String(error))
    return jsonAnswer(status, body ?? writeError(status, message))
  }
}

/** More than any client should read. */
const hugeBytes = 64 * 1024 * 1024

/** Faults with an answer of their own: the status in the body, the status of the response, and the message. */
const refusals: Partial<Record<DocumentFault, [meant: number, sent: number, message: string]>> = {
  too_many: [429, 429, 'Request rate limit exceeded.'],
  error_500: [500, 500, 'An unknown error occurred.'],
  unauthorized: [401, 401, 'Incorrect API key.'],
  not_found: [404, 404, 'The requested resource could not be found.'],
  error_in_200: [500, 200, 'The request could not be processed.'],
}

/** Sends the answer spoilt. Faults inside a body are applied by `spoilBody` before. Redirects lead to `elsewhere`. */
export async function sendSpoilt(
  response: ServerResponse,
  { status, type, body }: Answer,
  { fault, retryAfter }: ActiveFault,
  elsewhere: string,
  writeError: WriteError,
): Promise<void> {
  const after = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  const head = { 'content-type': type }
  const refusal = refusals[fault]
  if (refusal !== undefined) {
    const [meant, sent, message] = refusal
    const error = JSON.stringify(writeError(meant, message))
    response.writeHead(sent, { 'content-type': 'application/json', ...after }).end(error)
  } else if (fault === 'hang') return
  else if (fault === 'reset') response.socket?.resetAndDestroy()
  else if (fault === 'never_ready')
    response.writeHead(202, { 'content-type': 'application/json', ...after }).end('{}')
  else if (fault === 'error_503' || fault === 'gateway_404') {
    // Written by a gateway before the API, so not in its shape.
    const [sent, reason] = fault === 'error_503' ? [503, 'Service Unavailable'] : [404, 'Not Found']
    const page = `<html><body><h1>${sent} ${reason}</h1></body></html>`
    response.writeHead(sent, { 'content-type': 'text/html', ...after }).end(page)
  } else if (fault === 'redirect') response.writeHead(302, { location: elsewhere }).end()
  else if (fault === 'truncated') {
    response.writeHead(status, { ...head, 'content-length': body.length })
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.socket?.destroy())
  } else if (fault === 'garbled') {
    const garbled = Buffer.from(body.map((byte, index) => (index % 7 === 0 ? byte ^ 0x55 : byte)))
    response.writeHead(status, head).end(garbled)
  } else if (fault === 'slow_body') {
    response.writeHead(status, { ...head, 'content-length': body.length })
    drip(response, body)
  } else if (fault === 'huge') {
    response.writeHead(200, head)
    await pipeline(Readable.from(hugeBody(body)), response).catch(() => {})
  } else response.writeHead(status, { ...head, 'content-length': body.length }).end(body)
}

/** One byte now and then: never idle, and never done. */
function drip(response: ServerResponse, body: Buffer): void {
  let sent = 0
  const timer = setInterval(() => {
    if (sent < body.length) response.write(body.subarray(sent, ++sent))
    else response.end()
  }, 50)
  response.on('close', () => clearInterval(timer))
}

/** The true answer, padded with spaces, which JSON and PDF allow. */
function* hugeBody(body: Buffer): Generator<Buffer> {
  const space = Buffer.alloc(1024 * 1024, ' ')
  yield body.subarray(0, body.length - 1)
  for (let sent = 0; sent < hugeBytes; sent += space.length) yield space
  yield body.subarray(body.length - 1)
}

type Json = null | boolean | number | string | Json[] | JsonObject
interface JsonObject {
  [name: string]: Json
}

/** Puts a fault into the body, for faults that arrive as a good answer; other answers stay as they are. */
export function spoilBody(answer: Answer, { fault, turn }: ActiveFault): Answer {
  if (answer.type !== 'application/json') {
    if (fault === 'wrong_type')
      return { status: 200, type: 'application/json', body: Buffer.from('{"ok":true}') }
    return fault === 'missing_id' ? { ...answer, body: Buffer.alloc(0) } : answer
  }
  if (answer.status !== 200) return answer
  const change = {
    wrong_type: (value: Json) => wrongType(value, turn),
    missing_id: missingId,
    looping_page: (value: Json) => loop(value, turn),
  }
  if (!Object.hasOwn(change, fault)) return answer
  const value = change[fault as keyof typeof change](JSON.parse(answer.body.toString()))
  return { ...answer, body: Buffer.from(JSON.stringify(value)) }
}

/** The field that holds the list: Stripe's `data`, InvoiceXpress's `invoices`. Null for other answers. */
function listName(value: JsonObject): 'data' | 'invoices' | null {
  return (['data', 'invoices'] as const).find(name => Array.isArray(value[name])) ?? null
}

/** In turn, since a client that fails at the one never gets to the other: an object for the list, strings for numbers. */
function wrongType(value: Json, turn: number): Json {
  if (!isObject(value)) return value
  // An address is text already.
  const [sole = '', ...others] = Object.keys(value)
  if (others.length === 0 && ['output', 'qr_code', 'url'].includes(sole))
    return { [sole]: [value[sole] as Json] }
  const name = listName(value)
  if (name !== null && turn % 2 === 0) return { ...value, [name]: { ...(value[name] as Json[]) } }
  return stringify(value, name === null)
}

function stringify(value: Json, isOuter: boolean): Json {
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value)) return value.map(item => stringify(item, false))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      isOuter && Array.isArray(item) ? { ...item } : stringify(item, false),
    ]),
  )
}

function missingId(value: Json): Json {
  if (!isObject(value)) return value
  const name = listName(value)
  if (name !== null) return { ...value, [name]: (value[name] as Json[]).map(missingId) }
  // An object in a wrapper, as InvoiceXpress sends one.
  const [sole, ...others] = Object.entries(value)
  if (sole !== undefined && others.length === 0 && isObject(sole[1])) return { [sole[0]]: missingId(sole[1]) }
  const { id: _, pdfUrl: __, url: ___, ...rest } = value
  return rest
}

/** The server ignores the cursor for it; here the page claims that there is more. */
function loop(value: Json, turn: number): Json {
  const name = isObject(value) ? listName(value) : null
  if (!isObject(value) || name === null) return value
  if (!isObject(value.pagination ?? null)) return { ...value, has_more: true }
  const pagination = value.pagination as JsonObject
  return { ...value, pagination: { ...pagination, total_pages: Number(pagination.total_pages) + turn + 1 } }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
