import type { FastifyReply } from 'fastify'

const asItIs = (text: string): string => text

/** Sends what is JSON already. Fastify adds a charset to a text's type unless a serializer is set; JSON has none. */
export function sendJson(reply: FastifyReply, json: string | Buffer): FastifyReply {
  reply.header('content-type', 'application/json')
  if (typeof json === 'string') reply.serializer(asItIs)
  return reply.send(json)
}
