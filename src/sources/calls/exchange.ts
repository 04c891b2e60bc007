/** A request to an upstream over kept connections. A key may travel in the query: errors hold our own words, the upstream's origin or a code. */
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { SourceError } from '../source.ts'
import { Agent as HttpAgent, request as requestHttp } from './node-http.ts'
import { traceHeaders } from './trace.ts'

export interface ExchangeOptions {
  name: string
  /** The address of its API, such as https://api.stripe.com. */
  base: string
  /** The setting to check when it cannot be reached. */
  setting: string
  /** The reason for which nothing may be sent right now; null when it may. */
  refusal?: (() => SourceError | null) | undefined
}

export interface Exchanged {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Nothing was sent: the upstream asked for a pause while the request waited for its connection. */
export class HeldBack extends SourceError {
  constructor({ failure, message, retryAfter }: SourceError) {
    super(failure, message, retryAfter === undefined ? {} : { retryAfter })
  }
}

/** Far more than a page of a hundred invoices. */
const maxBytes = 32 * 1024 * 1024

/** The exchange rejects with a `SourceError` when there is no whole answer. Redirects are answers like any other: none is followed. */
export function createExchange({ name, base, setting, refusal }: ExchangeOptions) {
  const { protocol, origin } = new URL(base)
  const isSecure = protocol === 'https:'
  const request = isSecure ? requestHttps : requestHttp
  // Agents of our own: Node's global ones may be set to go through a proxy.
  const agent = isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })

  function explain(error: unknown): SourceError {
    if (error instanceof SourceError) return error
    const { code } = error as { code?: unknown }
    if (code === 'ETIMEDOUT') return overdue(name)
    const reason = typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'unknown reason'
    return new SourceError(
      'failed',
      `${name} could not be reached at ${origin} (${reason}): check the network and ${setting}`,
    )
  }

  const exchange = (url: URL, options: RequestOptions, body?: string): Promise<Exchanged> =>
    new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(explain(error))
      const headers = { ...(options.headers as object), ...traceHeaders() }
      const outgoing = request(url, { ...options, agent, headers })
      // Last of all, however long the connection took.
      const go = () => {
        const refused = refusal?.() ?? null
        if (refused === null) outgoing.end(body)
        else outgoing.destroy(new HeldBack(refused))
      }
      let isAnswered = false
      outgoing.on('socket', socket => {
        if (outgoing.reusedSocket) go()
        else socket.once(isSecure ? 'secureConnect' : 'connect', go)
      })
      outgoing.on('timeout', () => {
        const late = overdue(name)
        // The error of a half-read answer explains less.
        fail(late)
        outgoing.destroy(late)
      })
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        // It let go of a kept connection just as it was taken up again: a new one may do better.
        if (!isAnswered && outgoing.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? ''))
          resolve(exchange(url, options, body))
        else fail(error)
      })
      outgoing.on('response', response => {
        isAnswered = true
        const { statusCode: status = 0, headers } = response
        readText(response, name).then(text => resolve({ status, headers, text }), fail)
      })
      // Without an error, when the upstream wants another protocol.
      outgoing.on('close', () => {
        if (!isAnswered) fail(new SourceError('failed', `${name} gave no answer`))
      })
    })
  return exchange
}

export function overdue(name: string): SourceError {
  return new SourceError('timeout', `${name} did not answer in time`)
}

/** Bounded: any bytes at all must end in an answer or an error. */
async function readText(response: IncomingMessage, name: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    // Its connection goes with it.
    if (length > maxBytes) throw new SourceError('failed', `${name} answered too much`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new SourceError('failed', `${name} broke off its answer`)
  return Buffer.concat(chunks, length).toString()
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
