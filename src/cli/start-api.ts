/** The API's wiring: the only place that knows the store, the access rules and the HTTP application together. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createAuthenticate } from '../access/authenticate.ts'
import { readApiDescription } from '../http/api-description.ts'
import { createApp } from '../http/app.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { InvoiceXpressOptions } from '../invoicexpress/client.ts'
import { openReadStore } from '../store/open-store.ts'
import type { StripeOptions } from '../stripe/client.ts'
import { CliError } from './cli-error.ts'

export interface ApiOptions {
  url: string
  host: string
  port: number
  rateLimit: RateLimit | null
  /** Null: no payment platform is connected. */
  stripe: StripeOptions | null
  /** Null: no invoicing system is connected. */
  invoiceXpress: InvoiceXpressOptions | null
  /** How many processes serve together: they share what connections the store gives. */
  workers?: number
  log: Logger
}

export interface RunningApi {
  /** Where it listens, as in http://127.0.0.1:3000. */
  address: string
  /** Lets the requests in flight finish, then lets go of the port and the store. */
  stop(): Promise<void>
}

export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const { url, host, port, rateLimit, stripe, invoiceXpress, workers = 1, log } = options
  const store = await openReadStore(url, workers)
  const app = createApp({
    store,
    payments: stripe && (await import('../stripe/payment-platform.ts')).createPaymentPlatform(stripe),
    documents:
      invoiceXpress &&
      (await import('../invoicexpress/invoicing-system.ts')).createInvoicingSystem(invoiceXpress),
    authenticate: createAuthenticate(id => store.findToken(id)),
    rateLimit,
    log,
    apiDescription: readApiDescription(),
  })
  holdBusyConnections(app.server)
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

/** How long a client that asks on and on has, in milliseconds, to be told that its connection closes. */
const farewell = 250

/**
 * When the server closes, Node closes every connection without a request under way, though its client may be about to
 * send one, or still be reading the last answer. Here, connections stay open at first: what arrives is answered with
 * `Connection: close`. After that, none is closed while bytes of any answer wait for their client. Connections are
 * looked at only then: a request costs nothing for it.
 */
function holdBusyConnections(server: Server): void {
  const connections = new Set<Socket>()
  let closingSince: number | undefined
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  const closeIdleConnections = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    closingSince ??= performance.now()
    if (performance.now() - closingSince < farewell) return
    for (const { writableLength } of connections) if (writableLength > 0) return
    closeIdleConnections()
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
