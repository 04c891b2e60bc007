/** The API's wiring: the only place that knows the store, the access rules and the HTTP application together. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createAuthenticate } from '../../access/authenticate.ts'
import { createApp } from '../../http/app.ts'
import { loadWebFiles, readApiDescription } from '../../http/web-files.ts'
import {
  type ClosePort,
  closeGently,
  endConnectionsByAnswers,
  holdConnections,
} from '../../server/close-connections.ts'
import { noMoreSockets, openMoreSockets, sharedPlace } from '../../server/more-sockets.ts'
import { findSearchObstacle, openReadStore } from '../../store/engines.ts'
import type { apiOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import { explainListening } from './explain-listening.ts'
import { openPdfSources } from './open-pdf-sources.ts'

type Settled = ReturnType<typeof apiOf>

export type ApiOptions = Partial<Settled> &
  Pick<Settled, 'url' | 'host' | 'port' | 'rateLimit' | 'web' | 'stripe' | 'invoiceXpress'> & {
    /** Number of processes that serve together: they share the connections of the store. */
    workers?: number
    log: Logger
  }

export type PreparedApi = Awaited<ReturnType<typeof prepareApi>>
export type RunningApi = Awaited<ReturnType<PreparedApi['listen']>>

export async function startApi(options: ApiOptions): Promise<RunningApi> {
  return (await prepareApi(options)).listen()
}

/** Serves until `delay` resolves with the milliseconds to go on for; then finishes the requests in flight. */
export async function serveUntil(delay: Promise<number>, api: RunningApi, log: Logger): Promise<void> {
  log.info({ address: api.address }, 'listening')
  const delayMs = await delay
  api.leave()
  if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
  await sleep(delayMs, undefined, { ref: false })
  await api.stop()
}

export async function prepareApi(options: ApiOptions) {
  const { url, host, port, web, stripe, invoiceXpress, workers = 1, log } = options
  const { provider = null, publicUrl = null, pay = true, mcp } = options
  const store = await openReadStore(url, workers, (node, behindMs) =>
    behindMs === null
      ? log.info({ node }, 'a database server is read from again')
      : log.warn({ node, behindMs }, 'a database server is left out: another has newer content'),
  )
  const searchObstacle = await findSearchObstacle(url)
  if (searchObstacle !== null)
    log.warn({ err: searchObstacle }, 'searches are not run below pages: setpriority is forbidden here')
  const coversCustomer = (id: string, customerId: string) => store.coversCustomer(id, customerId)
  const ending = new AbortController()
  let hasLeft = false
  const verifiers =
    provider === null && publicUrl === null
      ? null
      : (await import('../../access/open-verifiers.ts')).openVerifiers({
          provider,
          publicUrl,
          findKey: kid => store.findKey(kid),
          coversCustomer,
          onProblem: err => log.warn({ err }, 'the keys of the identity provider could not be read'),
        })
  const apiDescription = readApiDescription()
  const app = createApp({
    ...options,
    store,
    ...(await openPdfSources(stripe, invoiceXpress)),
    authenticate: createAuthenticate({
      findToken: id => store.findToken(id),
      coversCustomer,
      verifyJwt: verifiers?.verifyJwt ?? null,
    }),
    identity: { provider, publicUrl },
    apiDescription,
    mcp: mcp ? (await import('../../mcp/create-mcp.ts')).createMcp(mcp) : undefined,
    files: web ? loadWebFiles(apiDescription, { ...options, pay: pay && stripe !== null }) : [],
    ending: ending.signal,
  })
  holdConnections(app.server)
  let sockets = noMoreSockets
  /** Lets go of the port, lets the requests in flight finish, then closes the store. */
  const stop = async (closePort?: ClosePort) => {
    await closeGently(app.server, () => app.close(), sockets, closePort)
    verifiers?.close()
    await store.close()
  }
  return {
    /** Instead of listening. */
    discard: () => stop(),
    async listen() {
      try {
        // Several processes share one socket, which the first of them holds.
        const place = workers > 1 ? { host, port, reusePort: false } : await sharedPlace({ host, port })
        const address = await app.listen(place)
        sockets = await openMoreSockets(app.server, place)
        return {
          /** As in http://127.0.0.1:3000. */
          address,
          readConnections: () => store.readConnections(),
          readNodes: () => store.readNodes(),
          leave,
          stop,
        }
      } catch (error) {
        await stop()
        const names = { host: '--host or HOST', port: '--port or PORT' }
        throw new CliError(explainListening(error as NodeJS.ErrnoException, { host, port }, names), {
          cause: error,
        })
      }
    },
  }

  /** From now on every answer ends its connection, and `/ready` is 503 unless other processes serve the address. */
  function leave(othersServe = false): void {
    if (!othersServe) ending.abort()
    if (hasLeft) return
    hasLeft = true
    endConnectionsByAnswers(app.server)
  }
}
