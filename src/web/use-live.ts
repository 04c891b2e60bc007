/** Answers of the service that are requested again after each change. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { CallOptions, Result } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { describeProblem, isFinal, type Problem } from './problem.ts'

/** Interval for tokens that may not follow changes, and after a failure. An unchanged answer is a 304. A hidden tab does not poll. */
const pollMs = 10_000
/** Pause after a wait without a change. A service that is shutting down answers such waits at once. */
const pauseMs = 1_000

interface State<T> {
  /** Key of the request that `result` answers. */
  key: string
  /** The last answer. While a new request runs, this is the answer to the previous one. */
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

/** `key` identifies the request. */
export function useLive<T>(key: string, load: (call: CallOptions) => Promise<Result<T>>) {
  const { client, shown, session, token, onRefused } = usePage()
  const [attempt, setAttempt] = useState(0)
  const retry = () => setAttempt(count => count + 1)
  const [state, setState] = useState<State<T>>(() => ({
    key: shown.has(key) ? key : '',
    result: (shown.get(key) as Result<T> | undefined) ?? null,
    problem: null,
  }))

  // The request starts before anything is drawn. `load` depends only on `key` and the token.
  const end = useMemo(() => {
    const stop = new AbortController()
    const { signal } = stop
    let timer: ReturnType<typeof setTimeout> | undefined
    let after: string | undefined
    let hasFailed = false

    const update = (change: Partial<State<T>>) => {
      if (!signal.aborted) setState(state => ({ ...state, ...change }))
    }
    const retryIn = (error: unknown, waitMs: number) =>
      update({ problem: describeProblem(error, token.current, Date.now() + waitMs) })

    async function run(): Promise<void> {
      try {
        const result = await load({ signal, onWait: retryIn })
        if (signal.aborted) return
        shown.set(key, result)
        update({ key, result, problem: null })
        void listen(result.etag)
      } catch (error) {
        if (signal.aborted) return
        const waitMs = Math.max(pollMs, ((error as { retryAfter?: number }).retryAfter ?? 0) * 1000)
        const problem = describeProblem(error, token.current, Date.now() + waitMs)
        if (isFinal(problem)) {
          update({ problem: { ...problem, retryAt: null } })
          if (problem.kind === 'expired' || problem.kind === 'revoked') onRefused?.()
          return
        }
        update({ problem })
        schedule(waitMs)
      }
    }

    /**
     * Waits for a change, at most 25 s. The first answer returns only the cursor, so the main answer is requested again unless its ETag
     * names the same cursor.
     */
    async function listen(etag: string | null): Promise<void> {
      if (session.invoice !== null) return schedule(pollMs)
      try {
        const isFirst = after === undefined
        const { changes, next } = await client.listChanges({ customer: session.customer, after }, { signal })
        after = next
        hasFailed = false
        // The ETag of a list contains the cursor of the customer's changes.
        if (isFirst && etag?.includes(`-${next}-`)) return listen(etag)
        schedule(isFirst || changes.length > 0 ? 0 : pauseMs)
      } catch {
        after = undefined
        // The main answer shows the reason. When only the changes fail, they are requested at the poll interval.
        if (!signal.aborted) schedule(hasFailed ? pollMs : 0)
        hasFailed = true
      }
    }

    function schedule(ms: number): void {
      timer = setTimeout(runInSight, ms)
    }
    function runInSight(): void {
      if (document.hidden) document.addEventListener('visibilitychange', runInSight, { signal, once: true })
      else void run()
    }

    addEventListener('online', retry, { signal })
    void run()
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [key, attempt])
  useEffect(() => end, [end])

  // After a refusal, a new token causes another request. The shown content stays.
  const isRefused = state.problem !== null && isFinal(state.problem)
  useEffect(() => {
    if (isRefused) retry()
  }, [session.token])

  /** Without access no content is shown. After other problems the last answer stays visible. */
  const isBarred = state.problem !== null && state.problem.retryAt === null
  return { ...state, isCurrent: state.key === key, isBarred, retry }
}
