/** Freshness and conditional requests of lists and details. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { version as packageVersion } from '../package.ts'
import type { ReadStore, Snapshot } from '../store/store.ts'
import { sendJson } from './send-json.ts'

/** Freshness goes into a header, so that the body stays the contract's. */
export function setReadHeaders(reply: FastifyReply, etag: string, syncedAt: number | null): void {
  reply.header('cache-control', 'private, no-cache')
  reply.header('etag', etag)
  if (syncedAt !== null) reply.header('fatura-synced-at', writeMoment(syncedAt))
}

let lastMoment = 0
let lastText = ''

/** All answers between two successful synchronizations have the same time: its text is made once. */
function writeMoment(moment: number): string {
  if (moment !== lastMoment) {
    lastText = new Date(moment).toISOString()
    lastMoment = moment
  }
  return lastText
}

/**
 * Any change of the customer's invoices changes it, so it can be answered without reading one of them. Customers whose
 * invoices were written together have the same version, so the customer is named as well.
 */
export function customerEtag(customerId: string, { version }: Snapshot): string {
  return `"${packageVersion}-${version}-${customerId}"`
}

/** Whether the client holds the customer's current records; if so, the headers are set and the status is 304. */
export async function isCustomerHeld(
  request: FastifyRequest,
  reply: FastifyReply,
  store: ReadStore,
  customerId: string,
): Promise<boolean> {
  if (request.headers['if-none-match'] === undefined) return false
  const snapshot = await store.readSnapshot(customerId)
  const etag = customerEtag(customerId, snapshot)
  if (!isHeldByClient(request, etag)) return false
  setReadHeaders(reply, etag, snapshot.synced_at)
  reply.code(304)
  return true
}

/** Sends a body under an ETag of its own text. */
export function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string,
  syncedAt: number | null,
): FastifyReply {
  const etag = `"${hash('sha1', body, 'base64url')}"`
  setReadHeaders(reply, etag, syncedAt)
  return isHeldByClient(request, etag) ? reply.code(304).send() : sendJson(reply, body)
}

/** RFC 9110, section 13.1.2: whether the client already holds what `etag` names. */
export function isHeldByClient(request: FastifyRequest, etag: string): boolean {
  const condition = request.headers['if-none-match']
  if (condition === undefined) return false
  if (condition === etag) return true
  return (
    condition.trim() === '*' || condition.split(',').some(held => held.trim().replace(/^W\//, '') === etag)
  )
}
