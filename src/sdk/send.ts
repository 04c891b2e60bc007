/** One request to the service: its token, its retries, and the waits between them. */
import { FaturaError, readError } from './fatura-error.ts'

export interface ClientOptions {
  /** The service's address, such as https://invoices.example.com; in a browser, '' is the page's own host. */
  baseUrl: string
  /** An access token, or a function that gets one. It is called once, and again after the service refused its token. */
  token: string | (() => Promise<string>)
  /** Replaces the global one. */
  fetch?: typeof globalThis.fetch
  /** Retries after a failure that may pass. Default: 3. */
  retries?: number
  /** Maximum sum of a call's waits between its tries. Default: a minute. */
  maxWaitMs?: number
  /** Timeout of one try. Default: 45 s, longer than the service takes for anything. */
  timeoutMs?: number
  /** Number of answers kept with their ETags. Default: 100. */
  remember?: number
}

export interface CallOptions {
  /** Ends the call: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called before each wait for a retry. */
  onWait?: ((error: FaturaError, waitMs: number) => void) | undefined
}

/** A GET request, and how its answer is read. */
interface Call<T> {
  path: string
  /** `accept` must be what comes. */
  headers: { accept: string; 'if-none-match'?: string }
  /** A failure while it reads counts as one of the connection, and is tried again. */
  read(answer: Response): Promise<T>
}

export function createSend(options: ClientOptions) {
  const { token, retries = 3, maxWaitMs = 60_000 } = options
  const base = options.baseUrl.replace(/\/+$/, '')
  if (!/^(https?:\/\/|\/|$)/.test(base))
    throw new TypeError("baseUrl must begin with https:// or http://, or be '' for the page's own host.")
  const tokens = typeof token === 'string' ? null : new Tokens(token)

  /** Sends the request as often as it takes; rejects with a `FaturaError`, or with the signal's reason. */
  return async <T>(
    path: string,
    headers: Call<T>['headers'],
    read: Call<T>['read'],
    { signal, onWait }: CallOptions = {},
  ): Promise<T> => {
    let failures = 0
    let waitedMs = 0
    let wasRefused = false
    for (;;) {
      signal?.throwIfAborted()
      // A token that is known is not waited for: the request leaves within the call.
      const asked = tokens?.ask() ?? null
      const bearer = asked === null ? String(token) : await orAborted(asked, signal)
      // Checked here, because a message of fetch would repeat the token.
      if (!/^[!-~]+$/.test(bearer)) throw new TypeError('The token must be one word of ASCII characters.')
      try {
        return await attempt({ path: base + path, headers, read }, bearer, options, signal)
      } catch (error) {
        if (!(error instanceof FaturaError)) throw error
        if (error.status === 401 && !wasRefused && asked !== null) {
          tokens?.forget(asked)
          wasRefused = true
          continue
        }
        // A document that is being made is no failure: only the waiting has an end.
        if (error.code !== 'document_not_ready' && (!mayPass(error) || ++failures > retries)) throw error
        const waitMs = pauseBefore(failures, error.retryAfter)
        waitedMs += waitMs
        if (waitedMs > maxWaitMs) throw error
        onWait?.(error, waitMs)
        await pause(waitMs, signal)
      }
    }
  }
}

/** The token that a function gets. It is asked for once, however many calls wait for it. */
class Tokens {
  private readonly fetchToken: () => Promise<string>
  private kept: Promise<string> | null = null

  constructor(fetchToken: () => Promise<string>) {
    this.fetchToken = fetchToken
  }

  ask(): Promise<string> {
    if (this.kept !== null) return this.kept
    const asked = this.fetchToken()
    this.kept = asked
    asked.catch(() => this.forget(asked))
    return asked
  }

  /** One that was asked for since stays. */
  forget(asked: Promise<string>): void {
    if (this.kept === asked) this.kept = null
  }
}

/** One try within its time. */
async function attempt<T>(
  { path, headers, read }: Call<T>,
  bearer: string,
  { baseUrl, fetch: send = fetch, timeoutMs = 45_000 }: ClientOptions,
  signal: AbortSignal | undefined,
): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`No answer within ${timeoutMs} ms.`)), timeoutMs)
  try {
    const answer = await send(path, {
      headers: { ...headers, authorization: `Bearer ${bearer}` },
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      cache: 'no-store',
      credentials: 'omit',
    })
    const isHeld = answer.status === 304 && 'if-none-match' in headers
    const isExpected = answer.ok && answer.headers.get('content-type')?.startsWith(headers.accept)
    if (!isHeld && !isExpected) throw await readError(answer)
    return await read(answer)
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof FaturaError) throw cause
    const message = `${baseUrl.replace(/\/+$/, '') || 'The service'} sent no whole answer: ${describeCause(cause)}.`
    throw new FaturaError('connection_failed', message, { cause })
  } finally {
    clearTimeout(timer)
  }
}

/** The innermost cause: `fetch` says no more than that it failed. */
function describeCause(error: unknown): string {
  const { cause, message = String(error), code } = (error ?? {}) as Partial<Error & { code: string }>
  if (cause instanceof Error) return describeCause(cause)
  return (code === undefined || message.includes(code) ? message : `${message} (${code})`).replace(/\.$/, '')
}

function mayPass({ code, status, retryAfter }: FaturaError): boolean {
  return (
    code === 'connection_failed' ||
    status === 429 ||
    status === 503 ||
    retryAfter !== null ||
    // A proxy that does not reach the service.
    (code === 'unexpected_answer' && (status === 502 || status === 504))
  )
}

/** Never less than was asked for; a little more, so that many clients do not come at once. */
function pauseBefore(failures: number, retryAfter: number | null): number {
  const askedMs = retryAfter === null ? 250 * 2 ** failures : retryAfter * 1000
  return Math.ceil(askedMs + Math.random() * 250)
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise: passed, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return orAborted(passed, signal).finally(() => clearTimeout(timer))
}

/** The result of `work`; or the signal's reason if it is aborted before. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason)
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort))
  })
}
