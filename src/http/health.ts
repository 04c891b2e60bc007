import type { ReadStore } from '../store/store.ts'
import { liveSchema, readySchema } from './schemas.ts'
import { sendJson } from './send-json.ts'
import type { TypedApp } from './typed-app.ts'

const healthy = '{"status":"ok"}'

export function addHealth(app: TypedApp, store: ReadStore): void {
  app.get('/live', { schema: liveSchema }, async (_request, reply) => {
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
  app.get('/ready', { schema: readySchema }, async (_request, reply) => {
    await store.ping()
    return sendJson(reply.header('cache-control', 'no-store'), healthy)
  })
}
