import type { FastifyReply } from 'fastify'

const asItIs = (text: string): string => text

/** Sends text that is JSON already. Fastify adds a charset to the type unless a serializer is set; JSON has none. */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json').serializer(asItIs).send(text)
}
