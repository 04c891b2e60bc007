/** Keeps the token of a host page. Requests a new token before the old one ends, and again after a failure or a refusal. */
import { pauseAfterFailureMs, renewAfterMs } from './renewal.ts'
import { readLife } from './session.ts'

const longestTimerMs = 2_147_483_647

export type FetchToken = () => Promise<string> | string

interface Host {
  /** Called after a change of the token or of `hasFailed`. */
  onChange(): void
  onFailure(error: Error): void
}

export class HostToken {
  private readonly host: Host
  private token: string | null = null
  private source: FetchToken | null = null
  private isStarted = false
  private failed = false
  private timer: ReturnType<typeof setTimeout> | undefined
  /** The running request. Null when no request is running. */
  private asking: symbol | null = null
  private askedAt = Number.NEGATIVE_INFINITY
  /** Number of requests in a row that brought no token. `refusals` counts tokens in a row that the service refused. */
  private failures = 0
  private refusals = 0

  constructor(host: Host) {
    this.host = host
  }

  get(): string | null {
    return this.token
  }

  hasFailed(): boolean {
    return this.failed
  }

  hasSource(): boolean {
    return this.token !== null || this.source !== null
  }

  set(given: string | null): void {
    this.token = given
    this.failed = false
    clearTimeout(this.timer)
    const waitMs = given === null ? null : renewAfterMs(readLife(given), Date.now())
    if (waitMs !== null) this.schedule(waitMs, () => this.renew())
    this.host.onChange()
  }

  getFetch(): FetchToken | null {
    return this.source
  }

  setFetch(given: FetchToken | null): void {
    this.source = given
    this.asking = null
    this.failures = this.refusals = 0
    clearTimeout(this.timer)
    void this.ask()
  }

  start(): void {
    this.isStarted = true
    if (this.token === null) void this.ask()
    else this.set(this.token)
  }

  stop(): void {
    this.isStarted = false
    this.asking = null
    clearTimeout(this.timer)
  }

  /**
   * Call when the service refused the token. A new token is requested with growing pauses, so that refused tokens do not cause constant
   * requests.
   */
  replace(): void {
    if (this.asking !== null || this.source === null) return
    const pauseMs = pauseAfterFailureMs(this.refusals++)
    this.schedule(Math.max(0, this.askedAt + pauseMs - performance.now()), () => this.ask())
  }

  /** Requests a token at once, for example because the user asked for it. */
  async ask(): Promise<void> {
    if (!this.isStarted || this.source === null || this.asking !== null) return
    clearTimeout(this.timer)
    const question = Symbol()
    this.asking = question
    this.askedAt = performance.now()
    const outcome = await fetchFrom(this.source)
    if (this.asking !== question) return
    this.asking = null
    if (typeof outcome !== 'string') return this.fail(outcome)
    this.failures = 0
    this.set(outcome)
  }

  /** Keeps the current token, which may still be valid, and tries again later. */
  private fail(error: Error): void {
    this.failures++
    this.failed = true
    this.schedule(pauseAfterFailureMs(this.failures), () => this.ask())
    this.host.onFailure(error)
    this.host.onChange()
  }

  /**
   * Requests the next token when the current one is due for renewal. The service has accepted the current token, so the refusals are reset.
   */
  private renew(): void {
    this.refusals = 0
    void this.ask()
  }

  private schedule(waitMs: number, step: () => void): void {
    clearTimeout(this.timer)
    if (this.isStarted && this.source !== null)
      this.timer = setTimeout(step, Math.min(waitMs, longestTimerMs))
  }
}

async function fetchFrom(source: FetchToken): Promise<string | Error> {
  try {
    return checkToken(await source())
  } catch (error) {
    return explain(error)
  }
}

/** Adds "fetchToken failed" to an error that the host page's function threw. */
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
