/**
 * InvoiceXpress over HTTP. Its key travels in the query, so nothing that Node or InvoiceXpress says of a request is passed
 * on: an error holds our own words, a status or a code.
 */
import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { Agent as HttpAgent, request as requestHttp } from '../node-http.ts'
import { SourceError } from '../sources.ts'
import { traceHeaders } from '../trace.ts'
import { parseJson, readText } from '../upstream/read-text.ts'

export interface InvoiceXpressOptions {
  /** The account's name, as in its address; null when only the address is known. */
  account: string | null
  apiKey: string
  /** Where the account's API is, as in https://name.app.invoicexpress.com. */
  base: string
  /** In milliseconds, for one request and its whole answer. */
  timeoutMs?: number
  /** Where PDFs may come from, as the PDF guard takes them. */
  pdfOrigins?: readonly string[]
}

export interface Answer {
  status: number
  retryAfter: string | undefined
  /** When it was given, by InvoiceXpress' clock. */
  date?: string | undefined
  /** Undefined when it is not JSON. */
  body: unknown
}

/** Rejects with a `SourceError` when there is no whole answer: `timeout`, `failed`, or `Withdrawn`. */
export type Ask = (
  path: string,
  query?: readonly (readonly [name: string, value: string])[],
  signal?: AbortSignal,
) => Promise<Answer>

/** Whoever asked no longer wants the answer: nobody's fault. */
export class Withdrawn extends SourceError {
  constructor() {
    super('failed', 'InvoiceXpress’ answer was no longer wanted')
  }
}

/** Any other address is a sandbox's. */
export function isInvoiceXpressOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.invoicexpress.com')
}

/** Far more than a page of fifty documents. */
const maxBytes = 32 * 1024 * 1024

const headers = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'fatura' }

export function createClient({ apiKey, base, timeoutMs = 20_000 }: InvoiceXpressOptions): Ask {
  // Agents of our own: Node's global ones may be set to go through a proxy.
  const send =
    new URL(base).protocol === 'https:'
      ? createSend(requestHttps, new HttpsAgent({ keepAlive: true }))
      : createSend(requestHttp, new HttpAgent({ keepAlive: true }))
  return async (path, query = [], signal) => {
    const url = new URL(path, base)
    for (const [name, value] of [...query, ['api_key', apiKey] as const]) url.searchParams.append(name, value)
    const exchange = new AbortController()
    const timer = setTimeout(() => exchange.abort(overdue()), timeoutMs)
    const stop = () => exchange.abort(new Withdrawn())
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    try {
      const response = await send(url, exchange.signal)
      const body = parseJson(await readText(response, 'InvoiceXpress', maxBytes))
      const { 'retry-after': retryAfter, date } = response.headers
      return { status: response.statusCode ?? 0, retryAfter, date, body }
    } catch (error) {
      throw exchange.signal.aborted ? exchange.signal.reason : redact(error)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }
}

type Send = (url: URL, signal: AbortSignal) => Promise<IncomingMessage>

/** Redirects are answers like any other: none is followed. */
function createSend(
  request: typeof requestHttp | typeof requestHttps,
  agent: InstanceType<typeof HttpAgent> | HttpsAgent,
): Send {
  const send: Send = (url, signal) =>
    new Promise((resolve, reject) => {
      const outgoing = request(url, { agent, headers: { ...headers, ...traceHeaders() }, signal })
      outgoing.on('response', resolve)
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        // InvoiceXpress let go of a kept connection just as it was taken up again: a new one may do better.
        if (outgoing.reusedSocket && error.code === 'ECONNRESET') resolve(send(url, signal))
        else reject(error)
      })
      // Without an error, when the upstream wants another protocol. A promise settles only once.
      outgoing.on('close', () => reject(new SourceError('failed', 'InvoiceXpress gave no answer')))
      outgoing.end()
    })
  return send
}

function overdue(): SourceError {
  return new SourceError('timeout', 'InvoiceXpress did not answer in time')
}

/** Of what Node or the network says, only the code is kept. */
function redact(error: unknown): SourceError {
  if (error instanceof SourceError) return error
  const { code } = error as { code?: unknown }
  if (code === 'ETIMEDOUT') return overdue()
  const reason = typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'unknown reason'
  return new SourceError('failed', `InvoiceXpress could not be asked (${reason})`)
}
