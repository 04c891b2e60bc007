/** Receives Stripe's webhooks, on a port of its own: an answer of 2xx means that the change is committed. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type Stripe from 'stripe'
import { writeBareAnswer } from '../server/bare-answer.ts'
import { findFault } from '../server/find-fault.ts'
import { createGuardedServer, tunnelRequested, type UnreadableRequest } from '../server/guarded-server.ts'
import type { Notification } from '../sources.ts'
import { readEvent } from './billing-source.ts'
import { createStripe, type StripeOptions } from './client.ts'
import { createBodyReader, maxBodyBytes } from './read-body.ts'

const keepAliveMs = 5_000

export interface WebhookOptions {
  stripe: StripeOptions
  secret: string
  /** Resolves once the change is committed. */
  apply(notification: Notification): Promise<unknown>
  log: Logger
}

export function createWebhookServer({ stripe, secret, apply, log }: WebhookOptions): Server {
  const client = createStripe(stripe)
  const readBody = createBodyReader()

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const signature = request.headers['stripe-signature']
    if (findFault(request) !== null) return refuse(response, 400)
    if (request.method !== 'POST') return refuse(response, 405, { allow: 'POST' })
    if (typeof signature !== 'string' || signature === '') {
      log.warn('webhook refused: it is not signed')
      return refuse(response, 400)
    }
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return refuse(response, 413)
    if (request.headers.expect !== undefined) response.writeContinue()
    const body = await readBody(request)
    if (body === 'gone') return
    if (body === 'too_large') return refuse(response, 413)
    if (body === 'given_up') return refuse(response, 503, { 'retry-after': '5' })
    const event = verify(client, body, signature, secret)
    if (event === null) {
      log.warn('webhook refused: its signature is not ours')
      return answer(response, 400)
    }
    const notification = event.notification
    // What is not about an invoice is not ours: acknowledged, so that it is not sent again, and counted in the log.
    if (notification !== null) await apply(notification)
    log.info({ event_id: event.id, type: event.type, applied: notification !== null }, 'webhook')
    answer(response, 200)
  }

  return createGuardedServer({
    handle: (request, response) => {
      receive(request, response).catch(error => {
        log.error({ err: error }, 'webhook failed')
        answer(response, 503, { 'retry-after': '5' })
      })
    },
    refuse: refuseUnreadable,
    keepAliveMs,
  })
}

function refuseUnreadable({ code }: UnreadableRequest): string {
  if (code === tunnelRequested) return writeBareAnswer(405, { allow: 'POST' }, refused)
  return writeBareAnswer(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400, {}, refused)
}

interface VerifiedEvent {
  id: string
  type: string
  notification: Notification | null
}

/** Null unless the signature is right for these very bytes. */
function verify(client: Stripe, body: Buffer, signature: string, secret: string): VerifiedEvent | null {
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

interface ThinEvent {
  id: string
  type: string
  created: string | Date
  related_object?: { id?: string; type?: string } | null
}

/** Events of the newer kind carry no data, only what they are about. */
function isThin(body: Buffer): boolean {
  return /"object"\s*:\s*"v2\.core\.event"/.test(body.toString('utf8', 0, 4_096))
}

function readThinEvent({ id, type, created, related_object }: ThinEvent): Notification | null {
  const { id: about, type: kind } = related_object ?? {}
  const event = { id, type, created: Math.floor(new Date(created).getTime() / 1000) }
  if (kind === 'invoice' && about?.startsWith('in_'))
    return { ...event, invoice_id: about, customer_id: null }
  if (kind === 'customer' && about?.startsWith('cus_'))
    return { ...event, invoice_id: null, customer_id: about }
  return null
}

const received = '{"received":true}'
const refused = '{"received":false}'

/** Answers before the body is read, or without: the connection cannot be used again. */
function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  answer(response, status, { ...headers, connection: 'close' })
}

function answer(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  if (response.headersSent) return
  const body = status === 200 ? received : refused
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...headers,
  })
  response.end(body)
}
