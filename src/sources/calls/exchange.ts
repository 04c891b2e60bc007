/**
 * Sends requests to an upstream over kept-alive connections. A key may be in the query, so error messages contain only our own words,
 * the upstream's origin or an error code.
 */
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { SourceError } from '../source.ts'
import { Agent as HttpAgent, request as requestHttp } from './node-http.ts'
import { traceHeaders } from './trace.ts'

export interface ExchangeOptions {
  name: string
  /** Address of the upstream's API, for example https://api.stripe.com. */
  base: string
  /** Name of the setting to check when the upstream cannot be reached. */
  setting: string
  /** Returns the reason for which nothing may be sent now. Null when requests may be sent. */
  refusal?: (() => SourceError | null) | undefined
}

export interface Exchanged {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** The request was not sent, because the upstream asked for a pause while the request waited for its connection. */
export class HeldBack extends SourceError {
  constructor({ failure, message, retryAfter }: SourceError) {
    super(failure, message, retryAfter === undefined ? {} : { retryAfter })
  }
}

/** Maximum size of an answer. A page of a hundred invoices is far smaller. */
const maxBytes = 32 * 1024 * 1024

/**
 * Returns a function that sends one request. The function rejects with a `SourceError` unless a whole answer arrives. It returns a
 * redirect like any other answer.
 */
export function createExchange({ name, base, setting, refusal }: ExchangeOptions) {
  const { protocol, origin } = new URL(base)
  const isSecure = protocol === 'https:'
  const request = isSecure ? requestHttps : requestHttp
  // Node's global agents may be configured to use a proxy, so this client has its own agents.
  const agent = isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })

  function explain(error: unknown): SourceError {
    if (error instanceof SourceError) return error
    const { code } = error as { code?: unknown }
    if (code === 'ETIMEDOUT') return overdue(name)
    const reason = typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'unknown reason'
    return new SourceError(
      'failed',
      `${name} could not be reached at ${origin} (${reason}). Check the network and ${setting}`,
    )
  }

  const exchange = (url: URL, options: RequestOptions, body?: string): Promise<Exchanged> =>
    new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(explain(error))
      const headers = { ...(options.headers as object), ...traceHeaders() }
      const outgoing = request(url, { ...options, agent, headers })
      // Sends the request only now that the connection is open. A pause that began meanwhile therefore still stops it.
      const send = () => {
        const refused = refusal?.() ?? null
        if (refused === null) outgoing.end(body)
        else outgoing.destroy(new HeldBack(refused))
      }
      let isAnswered = false
      outgoing.on('socket', socket => {
        if (outgoing.reusedSocket) send()
        else socket.once(isSecure ? 'secureConnect' : 'connect', send)
      })
      outgoing.on('timeout', () => {
        const late = overdue(name)
        // Rejects before `destroy` is called. Otherwise `destroy` may cause another error, which explains less than the timeout.
        fail(late)
        outgoing.destroy(late)
      })
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        // The upstream closed a kept-alive connection just when this request reused it. A new connection may succeed.
        if (!isAnswered && outgoing.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(error.code ?? ''))
          resolve(exchange(url, options, body))
        else fail(error)
      })
      outgoing.on('response', response => {
        isAnswered = true
        const { statusCode: status = 0, headers } = response
        readText(response, name).then(text => resolve({ status, headers, text }), fail)
      })
      // A server that expects another protocol closes the connection without an error.
      outgoing.on('close', () => {
        if (!isAnswered) fail(new SourceError('failed', `${name} gave no answer`))
      })
    })
  return exchange
}

export function overdue(name: string): SourceError {
  return new SourceError('timeout', `${name} did not answer in time`)
}

/** Reads at most `maxBytes`, because an upstream's answer may be endless. */
async function readText(response: IncomingMessage, name: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    // The throw leaves the loop, which also closes the connection.
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
