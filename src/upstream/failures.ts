import type { SourceError } from '../sources.ts'
import type { UpstreamOutcome } from '../telemetry.ts'

/** Classifies the failures of one upstream's client. */
export interface Failures {
  /** The upstream's, as in a sentence: "Stripe". */
  name: string
  /** Whether a retry may succeed. */
  mayPass(error: unknown): boolean
  /** Whether the upstream failed, rather than has no such record. */
  isFault(error: unknown): boolean
  /** The pause that the upstream asks for, in milliseconds; 0: none. */
  pauseFor(error: unknown): number
  /** The error in our words: the upstream's may hold an address or a part of a key. */
  explain(error: unknown): SourceError
}

/** The outcome by which a failed call is counted. */
export function outcomeOf({ failure }: SourceError, pauseMs: number): UpstreamOutcome {
  return pauseMs > 0 ? 'throttled' : failure
}
