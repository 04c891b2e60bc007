/** The API's wiring: the only place that knows the store, the access rules and the HTTP application together. */
import type { Logger } from 'pino'
import { createAuthenticate } from '../../access/authenticate.ts'
import type { ProviderOptions } from '../../access/verify-provider.ts'
import { createApp } from '../../http/app.ts'
import { readApiDescription } from '../../http/openapi/api-description.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import type { InvoiceXpressOptions } from '../../invoicexpress/client.ts'
import { openReadStore } from '../../store/engines.ts'
import type { StripeOptions } from '../../stripe/client.ts'
import { CliError } from '../terminal/cli-error.ts'
import { closeGently, endConnectionsByAnswers, holdConnections } from './close-connections.ts'
import { explainListening } from './explain-listening.ts'

export interface ApiOptions {
  url: string
  host: string
  port: number
  rateLimit: RateLimit | null
  corsOrigins?: readonly string[]
  /** Null: no identity provider is configured. */
  provider?: ProviderOptions | null
  /** The address under which clients reach the API; null: customer links do not work. */
  publicUrl?: string | null
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
  /**
   * The end is near. All is still served, over new connections too, but every answer ends its connection; and `/ready`
   * answers 503, unless other processes go on serving the address.
   */
  leave(othersServe?: boolean): void
  /** Lets the requests in flight finish, then lets go of the port and the store. */
  stop(): Promise<void>
}

/** Everything that can be done before anybody may connect. */
export interface PreparedApi {
  listen(): Promise<RunningApi>
  /** Instead of listening. */
  discard(): Promise<void>
}

export async function startApi(options: ApiOptions): Promise<RunningApi> {
  return (await prepareApi(options)).listen()
}

export async function prepareApi(options: ApiOptions): Promise<PreparedApi> {
  const { url, host, port, rateLimit, stripe, invoiceXpress, workers = 1, log } = options
  const { provider = null, publicUrl = null, corsOrigins } = options
  const store = await openReadStore(url, workers)
  const ending = new AbortController()
  let hasLeft = false
  const verifiers =
    provider === null && publicUrl === null
      ? null
      : (await import('../../access/open-verifiers.ts')).openVerifiers({
          provider,
          publicUrl,
          findKey: kid => store.findKey(kid),
          onProblem: err => log.warn({ err }, 'the keys of the identity provider could not be read'),
        })
  const app = createApp({
    store,
    payments: stripe && (await import('../../stripe/payment-platform.ts')).createPaymentPlatform(stripe),
    documents:
      invoiceXpress &&
      (await import('../../invoicexpress/invoicing-system.ts')).createInvoicingSystem(invoiceXpress),
    authenticate: createAuthenticate({
      findToken: id => store.findToken(id),
      verifyJwt: verifiers?.verifyJwt ?? null,
    }),
    identity: { provider, publicUrl },
    rateLimit,
    corsOrigins,
    log,
    apiDescription: readApiDescription(),
    ending: ending.signal,
  })
  holdConnections(app.server)
  const stop = async () => {
    await closeGently(app.server, () => app.close())
    verifiers?.close()
    await store.close()
  }
  return {
    discard: stop,
    async listen() {
      try {
        return { address: await app.listen({ host, port }), leave, stop }
      } catch (error) {
        await stop()
        const names = { host: '--host or HOST', port: '--port or PORT' }
        throw new CliError(explainListening(error as NodeJS.ErrnoException, { host, port }, names), {
          cause: error,
        })
      }
    },
  }

  function leave(othersServe = false): void {
    if (!othersServe) ending.abort()
    if (hasLeft) return
    hasLeft = true
    endConnectionsByAnswers(app.server)
  }
}
