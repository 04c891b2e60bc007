/** Answers of the local services, and the faults that change them. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ActiveFault, DocumentFault } from './faults.ts'

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

/** Writes an error's body in the shape of the imitated service. */
export type WriteError = (status: number, message: string) => object

/** An error to send as an answer. Without `body`, the service writes the body. */
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

/** Size of the `huge` fault. No client should read this much. */
const hugeBytes = 64 * 1024 * 1024

/** Faults with their own answer. Each has the status in the body, the status of the response, and the message. */
const refusals: Partial<Record<DocumentFault, [meant: number, sent: number, message: string]>> = {
  too_many: [429, 429, 'Request rate limit exceeded.'],
  error_500: [500, 500, 'An unknown error occurred.'],
  unauthorized: [401, 401, 'Incorrect API key.'],
  not_found: [404, 404, 'The requested resource could not be found.'],
  error_in_200: [500, 200, 'The request could not be processed.'],
}

/** Sends an answer with a fault. `spoilBody` has already applied the faults of the body. `target` is the address of a redirect. */
export async function sendSpoilt(
  response: ServerResponse,
  { status, type, body }: Answer,
  { fault, retryAfter }: ActiveFault,
  target: string,
  writeError: WriteError,
): Promise<void> {
  const after = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  const headers = { 'content-type': type }
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
    // A gateway in front of the API writes this answer, so it does not have the API's shape.
    const [sent, reason] = fault === 'error_503' ? [503, 'Service Unavailable'] : [404, 'Not Found']
    const page = `<html><body><h1>${sent} ${reason}</h1></body></html>`
    response.writeHead(sent, { 'content-type': 'text/html', ...after }).end(page)
  } else if (fault === 'redirect') response.writeHead(302, { location: target }).end()
  else if (fault === 'truncated') {
    response.writeHead(status, { ...headers, 'content-length': body.length })
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.socket?.destroy())
  } else if (fault === 'garbled') {
    const garbled = Buffer.from(body.map((byte, index) => (index % 7 === 0 ? byte ^ 0x55 : byte)))
    response.writeHead(status, headers).end(garbled)
  } else if (fault === 'slow_body') {
    response.writeHead(status, { ...headers, 'content-length': body.length })
    drip(response, body)
  } else if (fault === 'huge') {
    response.writeHead(200, headers)
    await pipeline(Readable.from(hugeBody(body)), response).catch(() => {})
  } else response.writeHead(status, { ...headers, 'content-length': body.length }).end(body)
}

/** Sends one byte every 50 ms, so that the connection is never idle and the body takes very long. */
function drip(response: ServerResponse, body: Buffer): void {
  let sent = 0
  const timer = setInterval(() => {
    if (sent < body.length) response.write(body.subarray(sent, ++sent))
    else response.end()
  }, 50)
  response.on('close', () => clearInterval(timer))
}

/** Pads the correct answer with spaces, which JSON and PDF allow. */
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

/** Applies faults that change the body of a successful answer. Other answers stay unchanged. */
export function spoilBody(answer: Answer, { fault, hits }: ActiveFault): Answer {
  if (answer.type !== 'application/json') {
    if (fault === 'wrong_type')
      return { status: 200, type: 'application/json', body: Buffer.from('{"ok":true}') }
    return fault === 'missing_id' ? { ...answer, body: Buffer.alloc(0) } : answer
  }
  if (answer.status !== 200) return answer
  const change = {
    wrong_type: (value: Json) => wrongType(value, hits),
    missing_id: missingId,
    looping_page: (value: Json) => loop(value, hits),
  }
  if (!Object.hasOwn(change, fault)) return answer
  const value = change[fault as keyof typeof change](JSON.parse(answer.body.toString()))
  return { ...answer, body: Buffer.from(JSON.stringify(value)) }
}

/** Name of the list in an answer, `data` at Stripe and `invoices` at InvoiceXpress. Null for an answer without a list. */
function listName(value: JsonObject): 'data' | 'invoices' | null {
  return (['data', 'invoices'] as const).find(name => Array.isArray(value[name])) ?? null
}

/** Replaces the list by an object, or numbers by texts, in turn. A client that fails at one fault would never meet the other. */
function wrongType(value: Json, hits: number): Json {
  if (!isObject(value)) return value
  // An answer of a single address has no number to change. The address becomes an array instead.
  const [sole = '', ...others] = Object.keys(value)
  if (others.length === 0 && ['output', 'qr_code', 'url'].includes(sole))
    return { [sole]: [value[sole] as Json] }
  const name = listName(value)
  if (name !== null && hits % 2 === 0) return { ...value, [name]: { ...(value[name] as Json[]) } }
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
  // InvoiceXpress sends a single object inside an outer object.
  const [sole, ...others] = Object.entries(value)
  if (sole !== undefined && others.length === 0 && isObject(sole[1])) return { [sole[0]]: missingId(sole[1]) }
  const { id: _, pdfUrl: __, url: ___, ...rest } = value
  return rest
}

/** Makes a page claim that more pages follow. The server also ignores the cursor for this fault. */
function loop(value: Json, hits: number): Json {
  const name = isObject(value) ? listName(value) : null
  if (!isObject(value) || name === null) return value
  if (!isObject(value.pagination ?? null)) return { ...value, has_more: true }
  const pagination = value.pagination as JsonObject
  return { ...value, pagination: { ...pagination, total_pages: Number(pagination.total_pages) + hits + 1 } }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
