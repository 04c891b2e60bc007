/** Freshness headers and conditional requests of lists and details. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ReadStore, Snapshot } from '../store/store.ts'
import type { CustomerParams } from './openapi/schemas.ts'
import { version as packageVersion } from './package.ts'
import { sendJson } from './send-json.ts'

/**
 * The time of the last synchronization is sent in a header, because the API's contract fixes the fields of the body.
 */
function setReadHeaders(reply: FastifyReply, etag: string, syncedAt: number | null): void {
  reply.header('cache-control', 'private, no-cache')
  reply.header('etag', etag)
  if (syncedAt !== null) reply.header('fatura-synced-at', new Date(syncedAt).toISOString())
}

/**
 * The ETag of a customer's answers. Any change of the customer's invoices changes the version, so a 304 reads no
 * invoice. The ETag names the customer, because customers whose invoices were written together have the same version.
 * It also contains the store's `life`. A restored store repeats versions, but has a new life.
 */
function customerEtag(customerId: string, { version, life }: Snapshot, variant: string): string {
  return `"${packageVersion}-${life}-${version}-${customerId}${variant === '' ? '' : `-${variant}`}"`
}

/**
 * Sends the result of `read`, formatted by `write`, or 304 when the client holds the customer's current records.
 * `variant` names everything else that the answer depends on.
 */
export async function sendOfCustomer<Found extends Snapshot>(
  request: FastifyRequest<{ Params: CustomerParams }>,
  reply: FastifyReply,
  store: ReadStore,
  read: (customerId: string) => Promise<Found>,
  write: (found: Found) => string,
  variant = '',
): Promise<FastifyReply> {
  const { customerId } = request.params
  if (request.headers['if-none-match'] !== undefined) {
    const snapshot = await store.readSnapshot(customerId)
    const etag = customerEtag(customerId, snapshot, variant)
    if (isHeldByClient(request, etag)) {
      setReadHeaders(reply, etag, snapshot.synced_at)
      return reply.code(304).send()
    }
  }
  const found = await read(customerId)
  setReadHeaders(reply, customerEtag(customerId, found, variant), found.synced_at)
  return sendJson(reply, write(found))
}

/** Sends a body whose ETag is a hash of its text. */
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

/** Whether the client already holds the body that `etag` names (RFC 9110, section 13.1.2). */
export function isHeldByClient(request: FastifyRequest, etag: string): boolean {
  const condition = request.headers['if-none-match']
  if (condition === undefined) return false
  if (condition === etag) return true
  return (
    condition.trim() === '*' || condition.split(',').some(held => held.trim().replace(/^W\//, '') === etag)
  )
}
