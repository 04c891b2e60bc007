/** What a check finds, and how long it may take. A check never throws: whatever goes wrong is a finding. */
import { SourceError } from '../sources.ts'
import { StoreDamaged, StoreError } from '../store/store.ts'

export type Result = 'ok' | 'warn' | 'FAIL' | 'skip'

export interface Finding {
  result: Result
  /** What was checked, as in "Stripe: read Invoices". */
  check: string
  /** What was found; never a secret, nor what is personal. */
  detail: string
  /** What to do about it; null when there is nothing to do. */
  next: string | null
}

export interface Reporter {
  /** Says what is being looked at, for somebody who watches. */
  begin(check: string): void
  ok(check: string, detail: string): void
  warn(check: string, detail: string, next: string): void
  fail(check: string, detail: string, next: string): void
  skip(check: string, detail: string, next?: string): void
}

export function createReporter(begin: (check: string) => void, add: (finding: Finding) => void): Reporter {
  const report = (result: Result) => (check: string, detail: string, next?: string) =>
    add({ result, check, detail, next: next ?? null })
  return {
    begin,
    ok: report('ok'),
    warn: report('warn'),
    fail: report('FAIL'),
    skip: report('skip'),
  }
}

/** In milliseconds, for one answer of an upstream, and for one check that takes a few. */
export const answerLimitMs = 5_000
export const checkLimitMs = 12_000

class Overdue extends Error {}

/** Rejects when the time is over. What is still under way is left behind: its own limits end it. */
export async function within<T>(limit: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const overdue = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      overdue.abort()
      reject(new Overdue(`no answer within ${limit / 1000} s`))
    }, limit)
  })
  try {
    return await Promise.race([work(overdue.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Runs a check within its limit, and says what it found. Null when it came to no end, which is a finding too: `next` is
 * what to do about that.
 */
export async function attempt<T>(
  report: Reporter,
  check: string,
  next: string,
  work: (signal: AbortSignal) => Promise<T>,
  limit = checkLimitMs,
): Promise<T | null> {
  report.begin(check)
  try {
    return await within(limit, work)
  } catch (error) {
    report.fail(check, explain(error), error instanceof StoreDamaged ? restoreAdvice : next)
    return null
  }
}

export const restoreAdvice = 'Stop what uses it, and restore a backup: docs/backup.md'

/** Only our own words: those of others may hold an address or a part of a key. */
export function explain(error: unknown): string {
  if (error instanceof SourceError || error instanceof StoreError || error instanceof Overdue)
    return error.message.replace(/\.$/, '')
  const { code, name } = error as { code?: unknown; name?: unknown }
  return `an unexpected failure (${typeof code === 'string' ? code : String(name)})`
}
