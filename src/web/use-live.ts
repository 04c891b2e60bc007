/** Answers of the service that are requested again after each change. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { CallOptions, ChangeList, Result } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { describeProblem, isFinal, type Problem } from './problem.ts'

/** Interval for tokens that may not follow changes, and after a failure. An unchanged answer is a 304. A hidden tab does not poll. */
const pollMs = 10_000
/** Pause after a wait without a change. A service that is shutting down answers such waits at once. */
const pauseMs = 1_000

interface State<T> {
  /** Key of the request that `result` answers. */
  key: string
  /** The last answer. While a new request runs, the previous answer stays here. */
  result: Result<T> | null
  problem: Problem | null
}

/**
 * Requests an answer again when one of `reasons` changes. Null until the answer comes. A failure is not shown, because the main answer
 * shows the problem.
 */
export function useAnswer<T>(ask: ((call: CallOptions) => Promise<T>) | false, reasons: unknown[]): T | null {
  const [answer, setAnswer] = useState<T | null>(null)
  useEffect(() => {
    if (!ask) return setAnswer(null)
    const stop = new AbortController()
    ask({ signal: stop.signal }).then(setAnswer, () => {})
    return () => stop.abort()
  }, reasons)
  return answer
}

interface Follower<T> {
  load(call: CallOptions): Promise<Result<T>>
  /** Waits for the customer's next change, at most 25 s. Null for a token that may not follow changes. */
  listChanges: ((after: string | undefined, call: CallOptions) => Promise<ChangeList>) | null
  onResult(result: Result<T>): void
  /**
   * Called after a failed request. `error` is the reason. The next request starts at `retryAt`. Returns whether there is a next request.
   */
  onFailure(error: unknown, retryAt: number): boolean
}

/** Requests an answer, waits for a change of the customer's invoices, and requests it again, until `end`. */
class LiveAnswer<T> {
  private readonly follower: Follower<T>
  private readonly stop = new AbortController()
  private timer: ReturnType<typeof setTimeout> | undefined
  /** Cursor of the changes. Undefined before the first answer, and after a failure. */
  private after: string | undefined
  private hasFailed = false

  constructor(follower: Follower<T>) {
    this.follower = follower
    void this.run()
  }

  get signal(): AbortSignal {
    return this.stop.signal
  }

  end(): void {
    clearTimeout(this.timer)
    this.stop.abort()
  }

  private async run(): Promise<void> {
    const { signal, follower } = this
    const onWait = (error: unknown, waitMs: number) => {
      if (!signal.aborted) follower.onFailure(error, Date.now() + waitMs)
    }
    try {
      const result = await follower.load({ signal, onWait })
      if (signal.aborted) return
      follower.onResult(result)
      void this.listen(result.etag)
    } catch (error) {
      if (signal.aborted) return
      const waitMs = Math.max(pollMs, ((error as { retryAfter?: number }).retryAfter ?? 0) * 1000)
      if (follower.onFailure(error, Date.now() + waitMs)) this.schedule(waitMs)
    }
  }

  /**
   * Waits for a change. The first call returns only a cursor. When the ETag of the main answer names another cursor, the main answer is
   * requested again.
   */
  private async listen(etag: string | null): Promise<void> {
    const { signal, follower } = this
    if (follower.listChanges === null) return this.schedule(pollMs)
    try {
      const isFirst = this.after === undefined
      const { changes, next } = await follower.listChanges(this.after, { signal })
      this.after = next
      this.hasFailed = false
      // The ETag of a list contains the cursor of the customer's changes.
      if (isFirst && etag?.includes(`-${next}-`)) return this.listen(etag)
      this.schedule(isFirst || changes.length > 0 ? 0 : pauseMs)
    } catch {
      this.after = undefined
      // The main answer shows the reason of a failure. When only the changes fail, the next request follows after `pollMs`.
      if (!signal.aborted) this.schedule(this.hasFailed ? pollMs : 0)
      this.hasFailed = true
    }
  }

  private schedule(ms: number): void {
    this.timer = setTimeout(() => this.runInSight(), ms)
  }

  private runInSight(): void {
    const { signal } = this
    if (document.hidden)
      document.addEventListener('visibilitychange', () => this.runInSight(), { signal, once: true })
    else void this.run()
  }
}

export function useLive<T>(key: string, load: (call: CallOptions) => Promise<Result<T>>) {
  const { client, shown, session, token, onRefused } = usePage()
  const { customer } = session
  const [attempt, setAttempt] = useState(0)
  const retry = () => setAttempt(count => count + 1)
  const [state, setState] = useState<State<T>>(() => ({
    key: shown.has(key) ? key : '',
    result: (shown.get(key) as Result<T> | undefined) ?? null,
    problem: null,
  }))
  const update = (change: Partial<State<T>>) => setState(state => ({ ...state, ...change }))

  // The request starts before anything is drawn. `load` depends only on `key` and the token.
  const answer = useMemo(
    () =>
      new LiveAnswer<T>({
        load,
        listChanges:
          session.invoice === null ? (after, call) => client.listChanges({ customer, after }, call) : null,
        onResult(result) {
          shown.set(key, result)
          update({ key, result, problem: null })
        },
        onFailure(error, retryAt) {
          const problem = describeProblem(error, token.current, retryAt)
          if (!isFinal(problem)) {
            update({ problem })
            return true
          }
          update({ problem: { ...problem, retryAt: null } })
          if (problem.kind === 'expired' || problem.kind === 'revoked') onRefused?.()
          return false
        },
      }),
    [key, attempt],
  )
  useEffect(() => {
    addEventListener('online', retry, { signal: answer.signal })
    return () => answer.end()
  }, [answer])

  // After a refusal, a new token causes another request. The shown content stays.
  const isRefused = state.problem !== null && isFinal(state.problem)
  useEffect(() => {
    if (isRefused) retry()
  }, [session.token])

  /** Without access no content is shown. After other problems the last answer stays visible. */
  const isBarred = state.problem !== null && state.problem.retryAt === null
  return { ...state, isCurrent: state.key === key, isBarred, retry }
}
