/** Events of a running Fatura, for metrics. Without a subscriber, publishing one costs a look at a flag. */
import { channel } from 'node:diagnostics_channel'

/** Names of upstream systems, as in a sentence. */
export const upstreamSystems = ['Stripe', 'InvoiceXpress'] as const

export const upstreamOutcomes = [
  'ok',
  /** The system has no such thing, or not yet. */
  'missing',
  'not_ready',
  'timeout',
  'failed',
  /** The system asked for a pause. */
  'throttled',
  /** No request was sent: the system failed too often, or had asked for a pause. */
  'not_asked',
] as const
export type UpstreamOutcome = (typeof upstreamOutcomes)[number]

export const applyOutcomes = [
  'changed',
  'deleted',
  /** With another answer that differs: it is asked for again. */
  'overlapped',
  'refused',
] as const
export type ApplyOutcome = (typeof applyOutcomes)[number]

interface TypedChannel<Message> {
  /** Without one, the message need not be made. */
  readonly hasSubscribers: boolean
  publish(message: Message): void
  subscribe(receive: (message: Message) => void): void
}

const open = <Message>(name: string): TypedChannel<Message> => channel(`fatura:${name}`) as never

/** A request that was answered; the route is its pattern, null when none fits. */
export const requestEnded = open<{ route: string | null; status: number; seconds: number }>('request-ended')
/** A request that was refused before it was read, because more come than can be served. */
export const requestShed = open<null>('request-shed')
/** A call to an upstream system; 0 seconds when no request was sent. */
export const upstreamCalled = open<{ system: string; outcome: UpstreamOutcome; seconds: number }>(
  'upstream-called',
)
/** Calls to an upstream that wait for their turn: one more, or one less. */
export const upstreamWaiting = open<{ system: string; change: 1 | -1 }>('upstream-waiting')
/** Whether an upstream is left alone because it failed too often. */
export const breakerTurned = open<{ system: string; isOpen: boolean }>('breaker-turned')
/** Requests that wait for a change: one more, or one less. */
export const changeWaiting = open<1 | -1>('change-waiting')
/** A webhook that was sent to an endpoint, and the time since its change was stored. */
export const webhookSent = open<{ isDelivered: boolean; seconds: number }>('webhook-sent')
/** Invoices whose state at the payment platform was written into the store, or was not, and why; after the commit. */
export const invoicesApplied = open<{ outcome: ApplyOutcome; count: number }>('invoices-applied')
/** An event of the payment platform whose invoices are stored, the first time that it is. */
export const eventApplied = open<null>('event-applied')
export const webhookAnswered = open<{ status: number }>('webhook-answered')
/** A part of a PDF, on its way to a client. */
export const pdfPassed = open<{ bytes: number }>('pdf-passed')
