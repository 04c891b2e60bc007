/** Freshness and conditional requests of lists and details. */
import type { FastifyReply, FastifyRequest } from 'fastify'

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

/** RFC 9110, section 13.1.2: whether the client already holds what `etag` names. */
export function isHeldByClient(request: FastifyRequest, etag: string): boolean {
  const condition = request.headers['if-none-match']
  if (condition === undefined) return false
  if (condition === etag) return true
  return (
    condition.trim() === '*' || condition.split(',').some(held => held.trim().replace(/^W\//, '') === etag)
  )
}
