/** An answer of the service that follows what happens there. */
import { useEffect, useState } from 'preact/hooks'
import type { CallOptions, Result } from '../client/client.ts'
import { usePage } from './context.ts'
import { describeProblem, isFinal, type Problem } from './problem.ts'

/** Nothing new costs a "not modified", and a tab that nobody looks at does not ask. */
const pollMs = 10_000

export interface Live<T> {
  /** What was read last; of another question while this one's answer is awaited. */
  result: Result<T> | null
  /** Whether `result` answers this question. */
  isCurrent: boolean
  problem: Problem | null
  retry(): void
}

interface State<T> {
  key: string
  result: Result<T> | null
  problem: Problem | null
}

/** `key` says what is asked. */
export function useLive<T>(key: string, load: (call: CallOptions) => Promise<Result<T>>): Live<T> {
  const { shown, early, session, onRefused } = usePage()
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<State<T>>(() => ({
    key: shown.has(key) ? key : '',
    result: (shown.get(key) as Result<T> | undefined) ?? null,
    problem: null,
  }))

  // `key` and the token say all that `load` depends on.
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    let timer: ReturnType<typeof setTimeout> | undefined

    const tell = (change: Partial<State<T>>) => {
      if (!signal.aborted) setState(state => ({ ...state, ...change }))
    }
    const retryIn = (error: unknown, waitMs: number) =>
      tell({ problem: describeProblem(error, session.token, Date.now() + waitMs) })

    async function run(isFirst: boolean): Promise<void> {
      try {
        const asked = isFirst && attempt === 0 && early?.key === key ? early : null
        asked?.listen(retryIn)
        const result = await (asked?.answer ?? load({ signal, onWait: retryIn }))
        if (signal.aborted) return
        shown.set(key, result)
        tell({ key, result: result as Result<T>, problem: null })
        schedule(pollMs)
      } catch (error) {
        if (signal.aborted) return
        const waitMs = Math.max(pollMs, ((error as { retryAfter?: number }).retryAfter ?? 0) * 1000)
        const problem = describeProblem(error, session.token, Date.now() + waitMs)
        if (isFinal(problem)) {
          tell({ problem: { ...problem, retryAt: null } })
          if (problem.kind === 'expired' || problem.kind === 'revoked') onRefused?.()
          return
        }
        tell({ problem })
        schedule(waitMs)
      }
    }

    let isDue = false
    function schedule(ms: number): void {
      isDue = false
      timer = setTimeout(() => {
        isDue = true
        wake()
      }, ms)
    }
    function wake(): void {
      if (!isDue || document.hidden) return
      isDue = false
      void run(false)
    }
    const hurry = () => setAttempt(count => count + 1)

    document.addEventListener('visibilitychange', wake, { signal })
    addEventListener('online', hurry, { signal })
    void run(true)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [key, attempt, session.token])

  return {
    result: state.result,
    isCurrent: state.key === key,
    problem: state.problem,
    retry: () => setAttempt(count => count + 1),
  }
}
