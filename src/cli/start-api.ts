/** The API's wiring: the only place that knows the store, the access rules and the HTTP application together. */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createAuthenticate } from '../access/authenticate.ts'
import { readApiDescription } from '../http/api-description.ts'
import { createApp } from '../http/app.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { openReadStore } from '../store/open-store.ts'
import { CliError } from './cli-error.ts'

export interface ApiOptions {
  url: string
  host: string
  port: number
  rateLimit: RateLimit | null
  log: Logger
}

export interface RunningApi {
  /** Where it listens, as in http://127.0.0.1:3000. */
  address: string
  /** Lets the requests in flight finish, then lets go of the port and the store. */
  stop(): Promise<void>
}

export async function startApi({ url, host, port, rateLimit, log }: ApiOptions): Promise<RunningApi> {
  const store = await openReadStore(url)
  const app = createApp({
    store,
    payments: null,
    documents: null,
    authenticate: createAuthenticate(id => store.findToken(id)),
    rateLimit,
    log,
    apiDescription: readApiDescription(),
  })
  const stop = async () => {
    await closeApp(app)
    await store.close()
  }
  try {
    return { address: await app.listen({ host, port }), stop }
  } catch (error) {
    await stop()
    throw new CliError(explain(error as NodeJS.ErrnoException, host, port), { cause: error })
  }
}

function explain({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use. Stop what uses it, or choose another with --port or PORT.`
    case 'EACCES':
      return `Port ${port} may not be used by this user. Choose one above 1023 with --port or PORT.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is not an address of this machine. Choose another with --host or HOST.`
    default:
      return `Cannot listen on ${host}:${port}: ${message}`
  }
}

/** Longer than a request takes; what is not done by then is cut off. */
const patience = 9_000

async function closeApp(app: FastifyInstance): Promise<void> {
  // A connection that was busy when the closing began is let go as soon as it falls idle.
  const letGo = setInterval(() => app.server.closeIdleConnections(), 50)
  const cutOff = setTimeout(() => app.server.closeAllConnections(), patience)
  await app.close()
  clearInterval(letGo)
  clearTimeout(cutOff)
}
