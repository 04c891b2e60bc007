/** Sends one request to the service, with its token, its retries and the waits between them. */
import { FaturaError, readError } from './fatura-error.ts'

export interface ClientOptions {
  /** The service's address, for example https://invoices.example.com. In a browser, '' means the page's own host. */
  baseUrl: string
  /**
   * An access token, or a function that returns one. The function is called once, and again after the service refused
   * its token.
   */
  token: string | (() => Promise<string>)
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch
  /** Retries after a temporary failure. Default: 3. */
  retries?: number
  /** Maximum sum of the waits between the attempts of one call. Default: one minute. */
  maxWaitMs?: number
  /** Timeout of one attempt. Default: 45 s, which is longer than the service ever takes. */
  timeoutMs?: number
  /** Number of answers kept with their ETags. Default: 100. */
  remember?: number
}

export interface CallOptions {
  /** Cancels the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Called before each wait for a retry. */
  onWait?: ((error: FaturaError, waitMs: number) => void) | undefined
}

interface Call<T> {
  path: string
  /** `accept` is the content type that the answer must have. */
  headers: { accept: string; 'if-none-match'?: string }
  /** A failure while reading counts as a failure of the connection and is retried. */
  read(answer: Response): Promise<T>
}

export function createSend(options: ClientOptions) {
  const { token, retries = 3, maxWaitMs = 60_000 } = options
  const base = options.baseUrl.replace(/\/+$/, '')
  if (!/^(https?:\/\/|\/|$)/.test(base))
    throw new TypeError("baseUrl must begin with https:// or http://, or be '' for the page's own host.")
  const tokens = typeof token === 'string' ? null : new Tokens(token)

  /**
   * Sends the request until it succeeds or the retries end. Rejects with a `FaturaError`, or with the signal's
   * reason.
   */
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
      // A fixed token is used without `await`, so that the request leaves within the call.
      const asked = tokens?.ask() ?? null
      const bearer = asked === null ? String(token) : await orAborted(asked, signal)
      // Checked here, because an error message of `fetch` would repeat the token.
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
        // A document that is still being made does not count as a failure. Only `maxWaitMs` limits the wait.
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

/** Keeps the token that `fetchToken` returned. Concurrent calls share one call of `fetchToken`. */
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

  /** Forgets the token only if no newer one was requested since. */
  forget(asked: Promise<string>): void {
    if (this.kept === asked) this.kept = null
  }
}

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

/** Describes the innermost cause, because the error of `fetch` itself says only that it failed. */
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
    // A proxy that cannot reach the service answers 502 or 504.
    (code === 'unexpected_answer' && (status === 502 || status === 504))
  )
}

/** Waits at least as long as the service asked. The random extra keeps many clients from retrying at once. */
function pauseBefore(failures: number, retryAfter: number | null): number {
  const askedMs = retryAfter === null ? 250 * 2 ** failures : retryAfter * 1000
  return Math.ceil(askedMs + Math.random() * 250)
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise: passed, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return orAborted(passed, signal).finally(() => clearTimeout(timer))
}

/** Returns the result of `work`, or rejects with the signal's reason when the signal aborts first. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason)
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort))
  })
}
