/** Diagnostic channels from which the metrics are counted. Publishing without a subscriber costs almost nothing. */
import { channel } from 'node:diagnostics_channel'

export const upstreamSystems = ['Stripe', 'InvoiceXpress'] as const

export const upstreamOutcomes = [
  'ok',
  'missing',
  'not_ready',
  'timeout',
  'failed',
  'throttled',
  /** No request was sent, because the upstream had failed too often or had asked for a pause. */
  'not_asked',
] as const
export type UpstreamOutcome = (typeof upstreamOutcomes)[number]

export const applyOutcomes = [
  'changed',
  'deleted',
  /** Two answers overlapped in time and differ, so the invoice is fetched again. */
  'overlapped',
  'refused',
] as const
export type ApplyOutcome = (typeof applyOutcomes)[number]

interface TypedChannel<Message> {
  /** False: nobody receives messages, so a publisher can skip making them. */
  readonly hasSubscribers: boolean
  publish(message: Message): void
  subscribe(receive: (message: Message) => void): void
}

const open = <Message>(name: string): TypedChannel<Message> => channel(`fatura:${name}`) as never

/** A request was answered. `route` is the route's pattern, or null when no route matched. */
export const requestEnded = open<{ route: string | null; status: number; seconds: number }>('request-ended')
/** A request was refused before it was read, because the server was overloaded. */
export const requestShed = open<null>('request-shed')
/** A call to an upstream ended, or was refused before a request was sent. */
export const upstreamCalled = open<{ system: string; outcome: UpstreamOutcome; seconds: number }>(
  'upstream-called',
)
/** The number of calls that wait for a slot changed by one. */
export const upstreamWaiting = open<{ system: string; change: 1 | -1 }>('upstream-waiting')
/** A circuit breaker opened because its upstream failed too often, or closed again. */
export const breakerTurned = open<{ system: string; isOpen: boolean }>('breaker-turned')
/** The number of requests that wait for a new change rose or fell by one. */
export const changeWaiting = open<1 | -1>('change-waiting')
/** A webhook was sent. `seconds` counts from the time of its change. */
export const webhookSent = open<{ isDelivered: boolean; seconds: number }>('webhook-sent')
/** Answers about invoices were applied to the store. Published after the commit. */
export const invoicesApplied = open<{ outcome: ApplyOutcome; count: number }>('invoices-applied')
/** An event of the payment platform was applied to the store for the first time. */
export const eventApplied = open<null>('event-applied')
export const webhookAnswered = open<{ status: number }>('webhook-answered')
export const pdfPassed = open<{ bytes: number }>('pdf-passed')
