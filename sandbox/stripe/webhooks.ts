/** Deliveries of events to a webhook: signed as Stripe signs, in order or not, twice or never. */
import { createHmac } from 'node:crypto'
import { request } from '../../src/sources/calls/node-http.ts'
import { type Random, shuffle } from '../random.ts'
import type { StripeEvent } from './objects.ts'

export interface DeliverOptions {
  order?: 'as is' | 'shuffled'
  /** The average number of repeats: 0.2 sends every fifth event twice, 1 every one. */
  duplicate?: number
  /** The share of events that are never sent, from 0 to 1. */
  drop?: number
  /** The index of the first event to send; by default those not acknowledged yet. */
  since?: number
}

export interface Delivery {
  event: StripeEvent
  /** The receiver's answer; 0 when there was none. */
  status: number
}

export interface Webhooks {
  subscribe(url: string, secret: string): void
  /** The subscribed address; null without one. */
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
  /** Refused events are sent again, as Stripe tries for days. */
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

/** The header `stripe-signature`, with the real time: the receiver compares it with its own clock. */
export function sign(payload: string, secret: string, at = Math.floor(Date.now() / 1000)): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${payload}`).digest('hex')}`
}

/** Resolves with the status of the answer; 0 when there was none. */
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
    // A connection for each delivery: none fails by the end of another.
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
