import { ApiError } from '../errors.ts'
import type { ReadStore } from '../store/store.ts'
import { liveSchema, readySchema } from './openapi/schemas.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'

const healthy = '{"status":"ok"}'

export function addHealth(app: TypedApp, store: ReadStore, ending?: AbortSignal): void {
  app.get('/live', { schema: liveSchema }, async (_request, reply) => {
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
  app.get('/ready', { schema: readySchema }, async (_request, reply) => {
    if (ending?.aborted)
      throw new ApiError('unavailable', 'This process is about to end; send requests elsewhere.', {
        retryAfter: 1,
      })
    await store.ping()
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
}
