/** InvoiceXpress over HTTP. Its key travels in the query, so an error holds our own words alone. */
import { createExchange, type ExchangeOptions, overdue, parseJson } from '../calls/exchange.ts'
import { SourceError } from '../source.ts'

export interface InvoiceXpressOptions {
  /** The account's name, as in its address; null when only the address is known. */
  account: string | null
  apiKey: string
  /** The address of the account's API, as in https://name.app.invoicexpress.com. */
  base: string
  /** For one request and its whole answer. */
  timeoutMs?: number
  /** Allowed origins of PDFs, as the PDF guard takes them. */
  pdfOrigins?: readonly string[]
}

type Query = ConstructorParameters<typeof URLSearchParams>[0]

export type Answer = Awaited<ReturnType<ReturnType<typeof createClient>>>

/** Any other address is a sandbox's. */
export function isInvoiceXpressOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.invoicexpress.com')
}

const headers = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'fatura' }

/** The client rejects with a `SourceError` when there is no whole answer: `timeout` or `failed`. */
export function createClient(
  { apiKey, base, timeoutMs = 20_000 }: InvoiceXpressOptions,
  refusal?: ExchangeOptions['refusal'],
) {
  const setting = isInvoiceXpressOwn(base) ? 'INVOICEXPRESS_ACCOUNT' : 'INVOICEXPRESS_API_BASE'
  const exchange = createExchange({ name: 'InvoiceXpress', base, setting, refusal })
  return async (path: string, query: Query = {}, signal?: AbortSignal) => {
    const url = new URL(path, base)
    url.search = `${new URLSearchParams(query)}`
    url.searchParams.append('api_key', apiKey)
    return withDeadline(timeoutMs, overdue('InvoiceXpress'), signal, async waiting => {
      const answer = await exchange(url, { headers, signal: waiting })
      const { 'retry-after': retryAfter, date } = answer.headers
      return { status: answer.status, retryAfter, date, body: parseJson(answer.text) }
    })
  }
}

/** Runs work with a signal of its own: it fails with `late` after a time limit, and is given up with the caller's signal. */
export async function withDeadline<T>(
  timeoutMs: number,
  late: SourceError,
  signal: AbortSignal | undefined,
  work: (waiting: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), timeoutMs)
  try {
    return await work(AbortSignal.any([deadline.signal, ...(signal === undefined ? [] : [signal])]))
  } catch (error) {
    if (deadline.signal.aborted) throw late
    throw signal?.aborted ? new SourceError('failed', 'InvoiceXpress’ answer was no longer wanted') : error
  } finally {
    clearTimeout(timer)
  }
}
