/** Receives Stripe's webhooks, on a port of its own: an answer of 2xx means that the change is committed. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type Stripe from 'stripe'
import type { Notification } from '../sources.ts'
import { readEvent } from './billing-source.ts'
import { createStripe, type StripeOptions } from './client.ts'

/** Far more than an event holds. */
const maximumBody = 1024 * 1024
/** A change that is not committed by then is refused, so that it is sent again; meanwhile its work goes on. */
const answerWithin = 2_000
/** A sender has so long to send its request. */
const requestTimeout = 10_000

export interface WebhookOptions {
  stripe: StripeOptions
  secret: string
  /** Resolves once the change is committed. */
  apply(notification: Notification): Promise<unknown>
  log: Logger
}

export function createWebhookServer({ stripe, secret, apply, log }: WebhookOptions): Server {
  const client = createStripe(stripe)
  const timeouts = { requestTimeout, headersTimeout: requestTimeout, connectionsCheckingInterval: 1_000 }
  const server = createServer(timeouts, (request, response) => {
    receive(request, response).catch(error => {
      log.error({ err: error }, 'webhook failed')
      answer(response, 503, { 'retry-after': '5' })
    })
  })

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return answer(response, 405, { allow: 'POST' })
    const body = await readBody(request)
    if (body === null) return answer(response, 413, { connection: 'close' })
    const signature = String(request.headers['stripe-signature'] ?? '')
    const event = verify(client, body, signature, secret)
    if (event === null) {
      log.warn('webhook refused: its signature is not ours')
      return answer(response, 400)
    }
    const notification = event.notification
    // What is not about an invoice is not ours: acknowledged, so that it is not sent again, and counted in the log.
    if (notification !== null && !(await isDoneInTime(apply(notification), event.id)))
      return answer(response, 503, { 'retry-after': '5' })
    log.info({ event_id: event.id, type: event.type, applied: notification !== null }, 'webhook')
    answer(response, 200)
  }

  /** False when it takes longer than a sender is to wait. */
  async function isDoneInTime(work: Promise<unknown>, eventId: string): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => {
      log.warn({ event_id: eventId }, 'webhook takes long: refused for now, and worked on')
      work.catch(error => log.error({ err: error }, 'webhook failed'))
      resolve(false)
    }, answerWithin)
    try {
      return await Promise.race([work.then(() => true), late])
    } finally {
      clearTimeout(timer)
    }
  }
  return server
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

/**
 * The raw bytes, for the signature is over them; null when they are too many. These are read to their end all the same,
 * though not kept: a sender that is cut off while it sends does not see the answer.
 */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length <= maximumBody) chunks.push(chunk)
  }
  return length > maximumBody ? null : Buffer.concat(chunks)
}

function answer(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  if (response.headersSent) return
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(status === 200 ? '{"received":true}' : '{"received":false}')
}
