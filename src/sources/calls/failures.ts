import type { SourceError } from '../source.ts'
import type { UpstreamOutcome } from './telemetry.ts'

export interface Failures {
  name: string
  mayPass(error: unknown): boolean
  /** True when the upstream itself failed. An answer that a record does not exist is no failure of the upstream. */
  isFault(error: unknown): boolean
  /** Milliseconds for which the upstream asks us to pause. 0: no pause. */
  pauseFor(error: unknown): number
  /** Converts an error to one in our own words. The upstream's text may hold an address or a part of a key. */
  explain(error: unknown): SourceError
}

export function outcomeOf({ failure }: SourceError, pauseMs: number): UpstreamOutcome {
  return pauseMs > 0 ? 'throttled' : failure
}

/** Maximum pause, even when an upstream asks for a longer one. */
export const longestPauseMs = 60_000

/** Converts a `Retry-After` header to a pause in milliseconds, a minute at most. A missing or unreadable header gives the default. */
export function readRetryAfter(value: string | undefined, now: number, defaultPauseMs: number): number {
  const text = value?.trim() ?? ''
  const asked = /^\d+$/.test(text)
    ? Number(text) * 1000
    : /[a-z]{3}/i.test(text)
      ? Date.parse(text) - now
      : Number.NaN
  return Number.isNaN(asked) ? defaultPauseMs : Math.min(Math.max(asked, 0), longestPauseMs)
}
