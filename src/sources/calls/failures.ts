import type { SourceError } from '../source.ts'
import type { UpstreamOutcome } from './telemetry.ts'

/** Classifies the failures of one upstream's client. */
export interface Failures {
  name: string
  mayPass(error: unknown): boolean
  /** Whether the upstream failed, rather than has no such record. */
  isFault(error: unknown): boolean
  /** The pause that the upstream asks for, in milliseconds; 0: none. */
  pauseFor(error: unknown): number
  /** The error in our words: the upstream's may hold an address or a part of a key. */
  explain(error: unknown): SourceError
}

export function outcomeOf({ failure }: SourceError, pauseMs: number): UpstreamOutcome {
  return pauseMs > 0 ? 'throttled' : failure
}

/** However long an upstream asks us to wait, we look again after this. */
export const longestPauseMs = 60_000

/** The pause of a `Retry-After` header in milliseconds, a minute at most; the usual pause without a readable one. */
export function readRetryAfter(value: string | undefined, now: number, defaultPauseMs = 1_000): number {
  const text = value?.trim() ?? ''
  const asked = /^\d+$/.test(text)
    ? Number(text) * 1000
    : /[a-z]{3}/i.test(text)
      ? Date.parse(text) - now
      : Number.NaN
  return Number.isNaN(asked) ? defaultPauseMs : Math.min(Math.max(asked, 0), longestPauseMs)
}
