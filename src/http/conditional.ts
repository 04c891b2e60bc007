/** What lists and details say of their age and of what a client may keep. */
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Freshness goes into a header, so that the body stays the contract's. */
export function setReadHeaders(reply: FastifyReply, etag: string, syncedAt: number | null): void {
  reply.header('cache-control', 'private, no-cache')
  reply.header('etag', etag)
  if (syncedAt !== null) reply.header('fatura-synced-at', new Date(syncedAt).toISOString())
}

/** RFC 9110, section 13.1.2: whether the client already holds what `etag` names. */
export function isHeldByClient(request: FastifyRequest, etag: string): boolean {
  const condition = request.headers['if-none-match']
  if (condition === undefined) return false
  return (
    condition.trim() === '*' || condition.split(',').some(held => held.trim().replace(/^W\//, '') === etag)
  )
}
