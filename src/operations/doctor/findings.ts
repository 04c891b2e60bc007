/** Findings of the doctor. Every check reports through `Report`. */
import { SourceError } from '../../sources/source.ts'
import { StoreDamaged, StoreError } from '../../store/store.ts'

export type Result = 'ok' | 'warn' | 'FAIL' | 'skip'

export interface Finding {
  result: Result
  /** The subject, for example "Stripe: read Invoices". */
  check: string
  /** Must not contain a secret or personal data. */
  detail: string
  next: string | null
}

export interface Check {
  /** Tells a terminal which check is running, before the check has findings. */
  begin(): void
  ok(detail: string): void
  warn(detail: string, next: string): void
  fail(detail: string, next: string): void
  skip(detail: string, next?: string): void
  /** Runs `work` within a time limit. A failure is reported with `next` as its remedy, and the result is null. */
  attempt<T>(next: string, work: (signal: AbortSignal) => Promise<T>, limitMs?: number): Promise<T | null>
}

export type Report = (check: string) => Check

export function createReport(begin: (check: string) => void, add: (finding: Finding) => void): Report {
  return check => {
    const report = (result: Result) => (detail: string, next?: string) =>
      add({ result, check, detail, next: next ?? null })
    const fail = report('FAIL')
    return {
      begin: () => begin(check),
      ok: report('ok'),
      warn: report('warn'),
      fail,
      skip: report('skip'),
      async attempt(next, work, limitMs = checkLimitMs) {
        begin(check)
        try {
          return await within(limitMs, work)
        } catch (error) {
          const [what = '', ...remedy] = explain(error).split(/(?<=\.) /)
          const own = error instanceof StoreDamaged ? restoreAdvice : remedy.join(' ')
          fail(what.replace(/\.$/, ''), own || next)
          return null
        }
      },
    }
  }
}

/** `answerLimitMs` limits one answer of an upstream system. `checkLimitMs` limits a check of several answers. */
export const answerLimitMs = 5_000
const checkLimitMs = 12_000

export const restoreAdvice =
  'Stop all programs that use the database, and restore a backup (see docs/backup.md)'

class Overdue extends Error {}

/** Rejects when the time is over. `work` is then no longer awaited, and its own timeouts end it. */
export async function within<T>(limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const overdue = new AbortController()
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    overdue.abort()
    reject(new Overdue(`no answer within ${limitMs / 1000} s`))
  }, limitMs)
  try {
    return await Promise.race([work(overdue.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Describes an error in this program's own words. Other errors' messages may contain an address or part of a key. */
export function explain(error: unknown): string {
  if (error instanceof SourceError || error instanceof StoreError || error instanceof Overdue)
    return error.message.replace(/\.$/, '')
  const { code, name } = error as { code?: unknown; name?: unknown }
  return `an unexpected failure (${typeof code === 'string' ? code : String(name)})`
}
