/**
 * Receives Stripe's webhooks on a port of its own. A 2xx means that the change is committed: it was stored, or it was
 * set aside with the reason why it cannot be stored.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type Stripe from 'stripe'
import { readMoment } from '../domain/calendar.ts'
import { webhookAnswered } from '../sources/calls/telemetry.ts'
import type { Notification } from '../sources/source.ts'
import { createStripe, type StripeOptions } from '../sources/stripe/client.ts'
import { readEvent } from '../sources/stripe/events.ts'
import { securityHeaders, writeBareAnswer } from './server/bare-answer.ts'
import type { UnreadableRequest } from './server/connection.ts'
import { createGuardedServer, type EndWith } from './server/guarded-server.ts'
import { maxBodyBytes, WebhookBodies } from './webhook-bodies.ts'

/**
 * A change that is not committed within this time is answered 503, so that Stripe sends it again. The service still
 * goes on to commit it.
 */
const answerWithinMs = 2_000
const keepAliveMs = 5_000

export interface WebhookOptions {
  stripe: StripeOptions
  secret: string
  apply(notification: Notification): Promise<unknown>
  log: Logger
}

export function createWebhookServer({ stripe, secret, apply, log }: WebhookOptions): Server {
  const client = createStripe(stripe)
  const bodies = new WebhookBodies()

  async function receive(
    request: IncomingMessage,
    response: ServerResponse,
    endWith: EndWith,
  ): Promise<void> {
    const signature = request.headers['stripe-signature']
    if (request.method !== 'POST') return refuse(endWith, 405, { allow: 'POST' })
    if (typeof signature !== 'string' || signature === '') {
      log.warn('webhook refused, because it has no signature')
      return refuse(endWith, 400)
    }
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return refuse(endWith, 413)
    const body = await bodies.read(request)
    if (body === 'gone') return
    if (body === 'too_large') return refuse(endWith, 413)
    if (body === 'given_up') return refuse(endWith, 503, { 'retry-after': '5' })
    const event = verify(client, body, signature, secret)
    if (event === null) {
      log.warn('webhook refused, because its signature does not fit STRIPE_WEBHOOK_SECRET')
      return answer(response, 400)
    }
    const { id, type, notification } = event
    // An event that concerns no invoice is logged and acknowledged, so that Stripe does not send it again.
    if (notification !== null && !(await isDoneInTime(apply(notification), id)))
      return answer(response, 503, { 'retry-after': '5' })
    log.info({ event_id: id, type, applied: notification !== null }, 'webhook')
    answer(response, 200)
  }

  /** Returns false when the work takes longer than `answerWithinMs`. */
  async function isDoneInTime(work: Promise<unknown>, eventId: string): Promise<boolean> {
    const late = sleep(answerWithinMs, false, { ref: false })
    if (await Promise.race([work.then(() => true), late])) return true
    log.warn({ event_id: eventId }, 'webhook takes too long: it got 503 and is still being applied')
    work.catch(error => log.error({ err: error }, 'webhook failed'))
    return false
  }

  return createGuardedServer({
    handle: (request, response, endWith) => {
      receive(request, response, endWith).catch(error => {
        log.error({ err: error }, 'webhook failed')
        answer(response, 503, { 'retry-after': '5' })
      })
    },
    refuse: refuseUnreadable,
    keepAliveMs,
  })
}

function refuseUnreadable({ code }: UnreadableRequest): string {
  return writeBareAnswer(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400, {}, refused)
}

/** Null unless the signature is valid for exactly these bytes. */
function verify(client: Stripe, body: Buffer, signature: string, secret: string) {
  if (!isSignedNow(signature)) return null
  try {
    if (isThin(body)) {
      const event = client.parseEventNotification(body, signature, secret) as unknown as ThinEvent
      return { id: event.id, type: event.type, notification: readThinEvent(event) }
    }
    const event = client.webhooks.constructEvent(body, signature, secret)
    return { id: event.id, type: event.type, notification: readEvent(event) }
  } catch {
    return null
  }
}

/** Stripe's own tolerance for clock differences. */
const toleratedSeconds = 300

/**
 * Stripe's library refuses only old timestamps. A timestamp that is no number, or years ahead, could be replayed for
 * ever.
 */
function isSignedNow(signature: string): boolean {
  const [signedAt = '', ...others] = signature
    .split(',')
    .map(part => part.trim())
    .filter(part => part.startsWith('t='))
  if (others.length > 0 || !/^t=\d{1,12}$/.test(signedAt)) return false
  return Math.abs(Date.now() / 1_000 - Number(signedAt.slice(2))) <= toleratedSeconds
}

interface ThinEvent {
  id: string
  type: string
  created: string | Date
  related_object?: { id?: string; type?: string; url?: string } | null
}

/** Thin events carry no data. They only name the object that they concern. */
function isThin(body: Buffer): boolean {
  return /"object"\s*:\s*"v2\.core\.event"/.test(body.toString('utf8', 0, 4_096))
}

function readThinEvent({ id, type, created, related_object }: ThinEvent): Notification | null {
  const { id: about, type: kind, url = '' } = related_object ?? {}
  // A signed event counts even when its time cannot be read. The current time is used then.
  const happenedAt = readMoment(String(created)) ?? Date.now()
  const event = { id, type, created: Math.floor(happenedAt / 1000) }
  if (kind === 'invoice' && about?.startsWith('in_'))
    return { ...event, invoice_id: about, customer_id: null }
  // The URL of a tax id contains its customer.
  const [, customer] = /^\/v1\/customers\/(cus_\w+)\/tax_ids\//.exec(url) ?? []
  const customer_id = kind === 'customer' ? about : kind === 'tax_id' ? customer : undefined
  return customer_id?.startsWith('cus_') ? { ...event, invoice_id: null, customer_id } : null
}

const received = '{"received":true}'
const refused = '{"received":false}'

/** Answers before the body is read, so the connection cannot be used again. */
function refuse(endWith: EndWith, status: number, headers: Record<string, string> = {}): void {
  webhookAnswered.publish({ status })
  endWith(writeBareAnswer(status, headers, refused))
}

function answer(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  if (response.headersSent) return
  webhookAnswered.publish({ status })
  const body = status === 200 ? received : refused
  response.writeHead(status, {
    ...securityHeaders,
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...headers,
  })
  response.end(body)
}
