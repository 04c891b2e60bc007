import type { FastifyInstance } from 'fastify'
import { serializeSums } from '../invoice-json.ts'
import type { ReadStore } from '../store/store.ts'
import { customerEtag, isCustomerHeld, setReadHeaders } from './conditional.ts'
import { type CustomerParams, getSummarySchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'

export function addGetSummary(app: FastifyInstance, store: ReadStore): void {
  app.get<{ Params: CustomerParams }>('/summary', { schema: getSummarySchema }, async (request, reply) => {
    const { customerId } = request.params
    if (await isCustomerHeld(request, reply, store, customerId)) return reply.send()
    const read = await store.readSums(customerId)
    setReadHeaders(reply, customerEtag(customerId, read), read.synced_at)
    return sendJson(reply, serializeSums(read.sums, read.credited))
  })
}
