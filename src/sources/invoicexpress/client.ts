/** HTTP client of InvoiceXpress. The API key is in the query, so error messages contain only our own words. */
import { createExchange, type ExchangeOptions, overdue, parseJson } from '../calls/exchange.ts'
import { SourceError } from '../source.ts'

export interface InvoiceXpressOptions {
  /** The account's name, for example `name` in https://name.app.invoicexpress.com. Null when only the address is known. */
  account: string | null
  apiKey: string
  /** Address of the account's API, for example https://name.app.invoicexpress.com. */
  base: string
  /** Timeout of one request, including its whole answer, in milliseconds. */
  timeoutMs?: number
  /** Allowed origins of PDFs, in the form of `PdfGuard.origins`. */
  pdfOrigins?: readonly string[]
}

type Query = ConstructorParameters<typeof URLSearchParams>[0]

export type Answer = Awaited<ReturnType<ReturnType<typeof createClient>>>

/** Whether an address belongs to InvoiceXpress. Any other address is a sandbox. */
export function isInvoiceXpressOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.invoicexpress.com')
}

const headers = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'fatura' }

/** Returns a function that sends one request. It rejects with a `SourceError`, `timeout` or `failed`, unless a whole answer arrives. */
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

/**
 * Runs `work` with a time limit. Rejects with `late` when the limit has passed. Rejects with a `SourceError` when the caller aborted
 * `signal`. The signal `waiting` is aborted in both cases.
 */
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
    throw signal?.aborted ? new SourceError('failed', 'The request to InvoiceXpress was canceled') : error
  } finally {
    clearTimeout(timer)
  }
}
