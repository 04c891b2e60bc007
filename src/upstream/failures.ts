import type { SourceError } from '../sources.ts'
import type { UpstreamOutcome } from '../telemetry.ts'

/** How one upstream's failures are told apart, whatever its client throws. */
export interface Failures {
  /** As in a sentence: "Stripe". */
  name: string
  /** Whether the same question may be answered when it is asked again. */
  mayPass(error: unknown): boolean
  /** Whether the upstream does not work, rather than has no such thing. */
  isFault(error: unknown): boolean
  /** For how many milliseconds the upstream wants to be left alone; 0 when it asks for no pause. */
  pauseFor(error: unknown): number
  /** In our words: the upstream's may hold an address or a part of a key. */
  explain(error: unknown): SourceError
}

/** How a call that failed is counted. */
export function outcomeOf({ failure }: SourceError, pauseMs: number): UpstreamOutcome {
  return pauseMs > 0 ? 'throttled' : failure
}
