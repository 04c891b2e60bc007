/** What can go wrong with an upstream, on request: by route, for ever or a number of times. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export const faultNames = [
  'hang',
  'too_many',
  'error_500',
  'error_503',
  'truncated',
  'garbled',
  'slow_body',
  'reset',
  'redirect',
  'huge',
  'wrong_type',
  'missing_id',
  'looping_page',
] as const
export type Fault = (typeof faultNames)[number]

export const routeNames = [
  'list_invoices',
  'retrieve_invoice',
  'list_lines',
  'list_events',
  'retrieve_customer',
  'retrieve_tax_rate',
  'pdf',
] as const
export type RouteName = (typeof routeNames)[number]

export interface FaultOptions {
  /** How many requests it spoils; until it is cleared, when not given. */
  times?: number
  /** The header's text as it is sent: seconds, a date, or nonsense. */
  retryAfter?: string
}

export interface Faults {
  /** One fault a route: a new one takes the old one's place. `*` is every route that has none of its own. */
  set(route: RouteName | '*', fault: Fault, options?: FaultOptions): void
  clear(): void
}

export interface ActiveFault {
  fault: Fault
  retryAfter: string | undefined
  /** Which request it spoils, from 0. */
  turn: number
}

/** `take` is the server's side: the fault of this request, if any. */
export function createFaults(): Faults & { take(route: string): ActiveFault | null } {
  const active = new Map<
    string,
    { fault: Fault; left: number; turn: number; retryAfter: string | undefined }
  >()
  return {
    set(route, fault, { times = Number.POSITIVE_INFINITY, retryAfter } = {}) {
      active.set(route, { fault, left: times, turn: 0, retryAfter })
    },
    clear() {
      active.clear()
    },
    take(route) {
      const found = [active.get(route), active.get('*')].find(entry => entry !== undefined && entry.left > 0)
      if (found === undefined) return null
      found.left--
      return { fault: found.fault, retryAfter: found.retryAfter, turn: found.turn++ }
    },
  }
}

/** An answer that is ready to be sent. */
export interface Answer {
  status: number
  type: string
  body: Buffer
}

/** More than anybody should read. */
const hugeBytes = 64 * 1024 * 1024

/**
 * Sends the answer spoilt. Those that change only what is in it are done by `spoilBody` before. `elsewhere` is where a
 * redirect leads.
 */
export async function sendSpoilt(
  response: ServerResponse,
  { status, type, body }: Answer,
  { fault, retryAfter }: ActiveFault,
  elsewhere: string,
): Promise<void> {
  const after = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
  const head = { 'content-type': type }
  if (fault === 'hang') return
  if (fault === 'reset') response.socket?.resetAndDestroy()
  else if (fault === 'too_many') {
    const error = {
      type: 'invalid_request_error',
      code: 'rate_limit',
      message: 'Request rate limit exceeded.',
    }
    response.writeHead(429, { 'content-type': 'application/json', ...after }).end(JSON.stringify({ error }))
  } else if (fault === 'error_500') {
    const error = { type: 'api_error', message: 'An unknown error occurred.' }
    response.writeHead(500, { 'content-type': 'application/json', ...after }).end(JSON.stringify({ error }))
  } else if (fault === 'error_503') {
    // Written by whatever stands before the API, so not in its shape.
    const page = '<html><body><h1>503 Service Unavailable</h1></body></html>'
    response.writeHead(503, { 'content-type': 'text/html', ...after }).end(page)
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

/** One byte now and then, so that something always comes and the end never does. */
function drip(response: ServerResponse, body: Buffer): void {
  let sent = 0
  const timer = setInterval(() => {
    if (sent < body.length) response.write(body.subarray(sent, ++sent))
    else response.end()
  }, 50)
  response.on('close', () => clearInterval(timer))
}

/** It begins as the true answer does, and is right to the end as far as it goes: JSON allows any space, PDF too. */
function* hugeBody(body: Buffer): Generator<Buffer> {
  const space = Buffer.alloc(1024 * 1024, ' ')
  yield body.subarray(0, body.length - 1)
  for (let sent = 0; sent < hugeBytes; sent += space.length) yield space
  yield body.subarray(body.length - 1)
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The answer with a fault inside, for the faults that arrive as a good answer; the same answer for all others. */
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
    looping_page: loop,
  }
  if (!Object.hasOwn(change, fault)) return answer
  const value = change[fault as keyof typeof change](JSON.parse(answer.body.toString()))
  return { ...answer, body: Buffer.from(JSON.stringify(value)) }
}

/** By turns, since who trips over the one never gets to the other: an object for the list, and strings for numbers. */
function wrongType(value: Json, turn: number): Json {
  const isList = isObject(value) && Array.isArray(value.data)
  if (isList && turn % 2 === 0) return { ...value, data: { ...(value.data as Json[]) } }
  return stringify(value, !isList)
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
  if (Array.isArray(value.data)) return { ...value, data: value.data.map(missingId) }
  const { id: _, ...rest } = value
  return rest
}

/** The server ignores the cursor for it; here the page claims that there is more. */
function loop(value: Json): Json {
  return isObject(value) && Array.isArray(value.data) ? { ...value, has_more: true } : value
}

function isObject(value: Json): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
