import type { FastifyInstance } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import type { ReadStore } from '../store/store.ts'
import { liveSchema, readySchema } from './openapi/operation-schemas.ts'
import { sendJson } from './send-json.ts'

const healthy = '{"status":"ok"}'

export interface HealthOptions {
  /** Maximum age of the records for `/ready` to answer 200. Null accepts any age. */
  readyMaxLagMs?: number | null
  /** Aborted when the service is about to end. `/ready` then answers 503. */
  ending?: AbortSignal
}

export function addHealth(app: FastifyInstance, store: ReadStore, options: HealthOptions): void {
  app.get('/live', { schema: liveSchema }, async (_request, reply) => {
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
  app.get('/ready', { schema: readySchema }, async (_request, reply) => {
    await checkReady(store, options)
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
}

/** Throws when requests should go to another process. */
export async function checkReady(
  store: Pick<ReadStore, 'ping' | 'readFreshness'>,
  { readyMaxLagMs = null, ending }: HealthOptions,
): Promise<void> {
  if (ending?.aborted)
    throw new ApiError('unavailable', 'This process is about to end. Send requests to another process.', {
      retryAfter: 1,
    })
  await store.ping()
  if (readyMaxLagMs === null) return
  const { synced_at } = await store.readFreshness()
  // A time in the future is as wrong as one too far in the past, because one of the two clocks is wrong.
  if (synced_at !== null && Math.abs(Date.now() - synced_at) <= readyMaxLagMs) return
  const age = synced_at === null ? 'were never synchronized' : `are of ${new Date(synced_at).toISOString()}`
  throw new ApiError(
    'unavailable',
    `The records ${age}, which is further from now than READY_MAX_LAG allows. Check that "fatura sync" is running.`,
    { retryAfter: 5 },
  )
}
