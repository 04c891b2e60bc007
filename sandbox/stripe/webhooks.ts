/** Delivers signed events to a webhook: in order or shuffled, and with repeats or losses on demand. */
import { createHmac } from 'node:crypto'
import { request } from '../../src/sources/calls/node-http.ts'
import { type Random, shuffle } from '../random.ts'
import type { StripeEvent } from './objects.ts'

export interface DeliverOptions {
  order?: 'as is' | 'shuffled'
  /** Average number of repeats. With 0.2 every fifth event is sent twice, and with 1 every event. */
  duplicate?: number
  /** Share of events that are never sent, from 0 to 1. */
  drop?: number
  /** Index of the first event to send. By default all events that were not acknowledged are sent. */
  since?: number
}

export interface Delivery {
  event: StripeEvent
  /** Status of the receiver's answer. 0 when no answer came. */
  status: number
}

export interface Webhooks {
  subscribe(url: string, secret: string): void
  /** Address of the subscriber. Null without a subscription. */
  endpoint(): string | null
  deliver(options?: DeliverOptions): Promise<Delivery[]>
}

export function createWebhooks(
  random: Random,
  events: readonly StripeEvent[],
  render: (event: StripeEvent) => StripeEvent,
): Webhooks {
  let receiver: { url: string; secret: string } | undefined
  /** Events before this index were sent at least once. */
  let reached = 0
  /** Refused events are sent again. Stripe repeats them for days. */
  const unacknowledged = new Set<StripeEvent>()

  return {
    subscribe(url, secret) {
      receiver = { url, secret }
    },
    endpoint: () => receiver?.url ?? null,
    async deliver({ order = 'as is', duplicate = 0, drop = 0, since } = {}) {
      if (receiver === undefined) throw new Error('Nobody has subscribed to the events.')
      const { url, secret } = receiver
      const due = since === undefined ? [...unacknowledged, ...events.slice(reached)] : events.slice(since)
      reached = events.length
      const kept = due.filter(event => {
        const isKept = random() >= drop
        if (!isKept) unacknowledged.delete(event)
        return isKept
      })
      const sent = kept.flatMap(event =>
        Array.from({ length: 1 + Math.floor(duplicate + random()) }, () => event),
      )
      const deliveries: Delivery[] = []
      for (const event of order === 'shuffled' ? shuffle(random, sent) : sent) {
        const payload = JSON.stringify(render(event), null, 2)
        const status = await post(url, payload, sign(payload, secret))
        if (status >= 200 && status < 300) unacknowledged.delete(event)
        else unacknowledged.add(event)
        deliveries.push({ event, status })
      }
      return deliveries
    },
  }
}

/** Writes the header `stripe-signature` with the real time, because the receiver compares it with its own clock. */
export function sign(payload: string, secret: string, at = Math.floor(Date.now() / 1000)): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${payload}`).digest('hex')}`
}

/** Resolves with the status of the answer. 0 when no answer came. */
export function post(
  url: string,
  payload: string,
  signature: string,
  { method = 'POST', timeoutMs = 30_000 } = {},
): Promise<number> {
  return new Promise(resolve => {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(payload),
      'stripe-signature': signature,
      'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
    }
    // Each delivery has its own connection, so that a closed connection cannot break a later delivery.
    const outgoing = request(url, { method, headers, agent: false, timeout: timeoutMs })
    outgoing.on('response', response => {
      response.resume()
      response.on('close', () => resolve(response.statusCode ?? 0))
    })
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', () => resolve(0))
    outgoing.end(payload)
  })
}
