/** Answers of the service, requested again at each change. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { CallOptions, Result } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { describeProblem, isFinal, type Problem } from './problem.ts'

/** For a token that may not follow changes, and after a failure. An unchanged answer is a 304; a hidden tab waits. */
const pollMs = 10_000
/** After a wait without a change: a service that is about to end answers at once. */
const pauseMs = 1_000

interface State<T> {
  /** The question that `result` answers. */
  key: string
  /** The last answer; of another question while this one's is awaited. */
  result: Result<T> | null
  problem: Problem | null
}

/** Asked for again with each new reason; null until it comes. A failure is not shown: the main answer shows what is wrong. */
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

/** `key` names the question. */
export function useLive<T>(key: string, load: (call: CallOptions) => Promise<Result<T>>) {
  const { client, shown, session, token, onRefused } = usePage()
  const [attempt, setAttempt] = useState(0)
  const retry = () => setAttempt(count => count + 1)
  const [state, setState] = useState<State<T>>(() => ({
    key: shown.has(key) ? key : '',
    result: (shown.get(key) as Result<T> | undefined) ?? null,
    problem: null,
  }))

  // The request leaves before anything is drawn. `load` depends on `key` and the token alone.
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

    /** Until a change, or for 25 s. The first answer brings the cursor; what changed before it is then requested. */
    async function listen(etag: string | null): Promise<void> {
      if (session.invoice !== null) return schedule(pollMs)
      try {
        const isFirst = after === undefined
        const { changes, next } = await client.listChanges({ customer: session.customer, after }, { signal })
        after = next
        hasFailed = false
        // The ETag of a list names the same place as the cursor of its customer's feed.
        if (isFirst && etag?.includes(`-${next}-`)) return listen(etag)
        schedule(isFirst || changes.length > 0 ? 0 : pauseMs)
      } catch {
        after = undefined
        // The answer itself shows the reason; a feed that fails alone is not asked all the time.
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

  // What was refused is asked for again with the next token; what is shown stays.
  const isRefused = state.problem !== null && isFinal(state.problem)
  useEffect(() => {
    if (isRefused) retry()
  }, [session.token])

  /** Without access nothing is shown; any other problem may pass, and the last answer stays in sight. */
  const isBarred = state.problem !== null && state.problem.retryAt === null
  return { ...state, isCurrent: state.key === key, isBarred, retry }
}
