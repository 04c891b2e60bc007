import type { FastifyReply } from 'fastify'

const asItIs = (text: string): string => text

/**
 * Sends a text that is already JSON. Without a serializer, Fastify would add a charset to the content type, and JSON
 * has none.
 */
export function sendJson(reply: FastifyReply, json: string | Buffer): FastifyReply {
  reply.header('content-type', 'application/json')
  if (typeof json === 'string') reply.serializer(asItIs)
  return reply.send(json)
}
