/** Keeps the token of a host page. Requests a new token before the old one ends, and again after a failure or a refusal. */
import { pauseAfterFailureMs, renewAfterMs } from './renewal.ts'
import { readLife } from './session.ts'

const longestTimerMs = 2_147_483_647

export type FetchToken = () => Promise<string> | string

interface Host {
  /** Called after a change of the token or of its state. */
  onChange(): void
  onFailure(error: Error): void
}

export function keepHostToken({ onChange, onFailure }: Host) {
  let token: string | null = null
  let fetchToken: FetchToken | null = null
  let isStarted = false
  let hasFailed = false
  let timer: ReturnType<typeof setTimeout> | undefined
  /** The running request. Null when no request is running. */
  let asking: symbol | null = null
  let askedAt = Number.NEGATIVE_INFINITY
  /** Number of requests in a row that brought no token. `refusals` counts tokens in a row that the service refused. */
  let failures = 0
  let refusals = 0

  function set(given: string | null): void {
    token = given
    hasFailed = false
    clearTimeout(timer)
    const waitMs = given === null ? null : renewAfterMs(readLife(given), Date.now())
    if (waitMs !== null) schedule(waitMs, renew)
    onChange()
  }

  function schedule(waitMs: number, step: () => void): void {
    clearTimeout(timer)
    if (isStarted && fetchToken !== null) timer = setTimeout(step, Math.min(waitMs, longestTimerMs))
  }

  /** Called when a token is due for renewal, so the service has accepted it. Resets the refusals. */
  function renew(): void {
    refusals = 0
    void ask()
  }

  async function ask(): Promise<void> {
    if (!isStarted || fetchToken === null || asking !== null) return
    clearTimeout(timer)
    const question = Symbol()
    asking = question
    askedAt = performance.now()
    let outcome: string | Error
    try {
      const answer = await fetchToken()
      outcome = checkToken(answer)
    } catch (error) {
      outcome = explain(error)
    }
    if (asking !== question) return
    asking = null
    if (typeof outcome !== 'string') return fail(outcome)
    failures = 0
    set(outcome)
  }

  /** Keeps the current token, which may still be valid, and tries again later. */
  function fail(error: Error): void {
    failures++
    hasFailed = true
    schedule(pauseAfterFailureMs(failures), ask)
    onFailure(error)
    onChange()
  }

  return {
    get: () => token,
    hasFailed: () => hasFailed,
    hasSource: () => token !== null || fetchToken !== null,
    set,
    getFetch: () => fetchToken,
    setFetch(given: FetchToken | null): void {
      fetchToken = given
      asking = null
      failures = refusals = 0
      clearTimeout(timer)
      void ask()
    },
    start(): void {
      isStarted = true
      if (token === null) void ask()
      else set(token)
    },
    stop(): void {
      isStarted = false
      asking = null
      clearTimeout(timer)
    },
    /**
     * Call when the service refused the token. A new token is requested with growing pauses, so that refused tokens do not cause constant
     * requests.
     */
    replace(): void {
      if (asking !== null || fetchToken === null) return
      const pauseMs = pauseAfterFailureMs(refusals++)
      schedule(Math.max(0, askedAt + pauseMs - performance.now()), ask)
    },
    /** Requests a token at once, because the user asked for it. */
    ask,
  }
}

/** Adds "fetchToken failed" to an error of the host's own function, which does not name its origin. */
function explain(error: unknown): Error {
  if (error instanceof NoTokenError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new Error(`fetchToken failed: ${reason}`, { cause: error })
}

class NoTokenError extends TypeError {}

function checkToken(given: unknown): string {
  if (typeof given === 'string' && /^[!-~]+$/.test(given)) return given
  const what =
    typeof given === 'string' ? 'a text that is no token' : `${given === null ? null : typeof given}`
  throw new NoTokenError(`fetchToken gave ${what}; it must return a token, or a promise of one.`)
}
