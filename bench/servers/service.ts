/** The service as it is run in earnest: tokens, validation, headers, rate limit and a line of log a request. */
import { createToken } from '../../src/http/access/token.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import type { SeededStore } from '../seed/stores.ts'
import { entryPoint, type RunningServer, startServer } from './processes.ts'

export interface Service extends RunningServer {
  /** What every request carries. */
  headers: Record<string, string>
}

export interface ServiceOptions {
  folder: string
  name: string
  store: SeededStore
  flags?: readonly string[]
  env?: Record<string, string>
}

/** The headers of a new token for every customer. */
export async function createServiceToken(store: SeededStore): Promise<Service['headers']> {
  const { id, token, hash } = createToken()
  const tokens = await openWriteStore(store.url)
  const created_at = Date.now()
  const expires_at = created_at + 24 * 60 * 60 * 1000
  try {
    await tokens.saveToken({
      id,
      name: 'bench',
      hash,
      customers: null,
      created_at,
      expires_at,
      revoked_at: null,
    })
  } finally {
    await tokens.close()
  }
  return { authorization: `Bearer ${token}` }
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { folder, name, store, flags = [], env } = options
  const headers = await createServiceToken(store)
  const server = await startServer(folder, name, [entryPoint, 'serve', ...flags], {
    DATABASE_URL: store.readUrl,
    PORT: '0',
    // A limit that is counted, but that nobody reaches.
    RATE_LIMIT: '999999999/h',
    LOG_LEVEL: 'info',
    NODE_ENV: 'production',
    ...env,
  })
  return { ...server, headers }
}

export function listPath(customerId: string): string {
  return `/api/v1/client/${customerId}/invoices`
}
