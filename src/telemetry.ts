/** What happens while Fatura runs, told to whoever listens. While nobody does, telling costs one look at a flag. */
import { type Channel, channel } from 'node:diagnostics_channel'

/** A request that was answered. */
export interface RequestEnded {
  /** The route's pattern; null when no route fits. */
  route: string | null
  status: number
  seconds: number
}

/** One question to an upstream system, and how it ended. */
export interface UpstreamCall {
  /** As in a sentence: "Stripe". */
  system: string
  outcome: UpstreamOutcome
  /** 0 when it was not asked at all. */
  seconds: number
}

export const upstreamOutcomes = [
  'ok',
  /** The system has no such thing, or not yet. */
  'missing',
  'not_ready',
  'timeout',
  'failed',
  /** It asked for a pause. */
  'throttled',
  /** It failed too often, or asked for a pause before: it was left alone. */
  'not_asked',
] as const
export type UpstreamOutcome = (typeof upstreamOutcomes)[number]

export interface Happening<Fact> {
  /** Whether anybody listens: a fact that nobody hears need not be made. */
  readonly isHeard: boolean
  tell(fact: Fact): void
  listen(hear: (fact: Fact) => void): void
}

export const requestEnded = happening<RequestEnded>('request-ended')
/** A request that was refused before it was read, because more come than can be served. */
export const requestShed = happening<null>('request-shed')
export const upstreamCalled = happening<UpstreamCall>('upstream-called')
/** Calls to an upstream that wait for their turn: one more, or one less. */
export const upstreamWaiting = happening<{ system: string; change: 1 | -1 }>('upstream-waiting')
/** Whether an upstream is left alone because it failed too often. */
export const breakerTurned = happening<{ system: string; isOpen: boolean }>('breaker-turned')
export const webhookAnswered = happening<{ status: number }>('webhook-answered')
/** A part of a PDF, on its way to a client. */
export const pdfPassed = happening<{ bytes: number }>('pdf-passed')

function happening<Fact>(name: string): Happening<Fact> {
  const told: Channel = channel(`fatura:${name}`)
  return {
    get isHeard() {
      return told.hasSubscribers
    },
    tell: fact => told.publish(fact),
    listen: hear => told.subscribe(fact => hear(fact as Fact)),
  }
}
