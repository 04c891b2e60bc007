/** Wires the API. Only this file knows the store, the access rules and the HTTP application together. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ApiError } from '../../domain/errors.ts'
import { createAuthenticate } from '../../http/access/authenticate.ts'
import { createApp } from '../../http/app.ts'
import { checkReady } from '../../http/health.ts'
import { closeGently, endConnectionsByAnswers, holdConnections } from '../../http/server/close-connections.ts'
import {
  handsOnConnections,
  noMoreSockets,
  openMoreSockets,
  sharedAddress,
} from '../../http/server/more-sockets.ts'
import { loadWebFiles, readApiDescription } from '../../http/web-files.ts'
import { findSearchObstacle, openReadStore } from '../../store/engines.ts'
import type { ReadStore } from '../../store/store.ts'
import type { apiOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import { explainListening } from './explain-listening.ts'
import { openPdfSources } from './open-pdf-sources.ts'

type Settled = ReturnType<typeof apiOf>

export type ApiOptions = Partial<Settled> &
  Pick<Settled, 'url' | 'host' | 'port' | 'rateLimit' | 'web' | 'stripe' | 'invoiceXpress'> & {
    sharesPort?: boolean
    log: Logger
  }

export type RunningApi = Awaited<ReturnType<typeof startApi>>

/**
 * Serves until `delay` resolves. `delay` resolves with a number of milliseconds, for which requests are still served. Then the API stops.
 */
export async function serveUntil(delay: Promise<number>, api: RunningApi, log: Logger): Promise<void> {
  log.info({ address: api.address }, 'listening')
  const delayMs = await delay
  api.leave()
  if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
  await sleep(delayMs, undefined, { ref: false })
  await api.stop()
}

export async function startApi(options: ApiOptions) {
  const { host, port, sharesPort = false, readyMaxLagMs = null } = options
  const store = await openReadStore(options.url)
  const ending = new AbortController()
  const verifiers = await openVerifiersOf(store, options)
  const app = await openApp(options, store, verifiers, ending.signal)
  holdConnections(app.server)
  let sockets = noMoreSockets
  const stop = async () => {
    await closeGently(app.server, () => app.close(), sockets)
    verifiers?.close()
    await store.close()
  }
  try {
    const listenOptions = await sharedAddress({ host, port }, sharesPort)
    const address = await app.listen(listenOptions)
    sockets = await openMoreSockets(app.server, listenOptions)
    await warnOfSystem(options)
    return {
      /** Address of the API, for example http://127.0.0.1:3000. */
      address,
      /** Resolves with the reason why the API is not ready. Null when the API is ready. */
      askReady: () => explainUnready(checkReady(store, { readyMaxLagMs, ending: ending.signal })),
      readConnections: () => store.readConnections(),
      /** From now on `/ready` answers 503. Unless other processes share the port, each answer also closes its connection. */
      leave() {
        ending.abort()
        if (!sharesPort) endConnectionsByAnswers(app.server)
      },
      stop,
    }
  } catch (error) {
    await stop()
    const names = { host: '--host or HOST', port: '--port or PORT' }
    const problem = explainListening(error as NodeJS.ErrnoException, { host, port }, names)
    throw new CliError(problem, { cause: error })
  }
}

async function openApp(
  options: ApiOptions,
  store: Awaited<ReturnType<typeof openReadStore>>,
  verifiers: Awaited<ReturnType<typeof openVerifiersOf>>,
  ending: AbortSignal,
) {
  const { web, stripe, invoiceXpress } = options
  const { provider = null, publicUrl = null, pay = true, mcp, signIn = null } = options
  const apiDescription = readApiDescription()
  const downloads = { payments: stripe !== null, ix: invoiceXpress !== null }
  const page = { ...options, downloads, pay: pay && stripe !== null, signIn: signIn !== null }
  return createApp({
    ...options,
    store,
    ...(await openPdfSources(stripe, invoiceXpress)),
    authenticate: createAuthenticate({
      findToken: id => store.findToken(id),
      coversCustomer: (id, customerId) => store.coversCustomer(id, customerId),
      verifyJwt: verifiers?.verifyJwt ?? null,
    }),
    identity: { provider, publicUrl },
    apiDescription,
    mcp: mcp ? (await import('../../http/mcp/create-mcp.ts')).createMcp(mcp) : undefined,
    signIn: signIn ? (await import('../../http/sign-in/create-sign-in.ts')).createSignIn(signIn) : undefined,
    files: web ? loadWebFiles(apiDescription, page) : [],
    ending,
  })
}

async function warnOfSystem({ url, sharesPort, log }: ApiOptions): Promise<void> {
  const searchObstacle = await findSearchObstacle(url)
  if (searchObstacle !== null)
    log.warn(
      { err: searchObstacle },
      'searches do not run with lower priority than pages, because setpriority is forbidden',
    )
  if (sharesPort && (await handsOnConnections()) === false)
    log.warn(
      'net.ipv4.tcp_migrate_req is 0: a process that ends may reset connections that it has not accepted',
    )
}

/** Returns null when the tokens of the store are the only tokens. */
async function openVerifiersOf(store: ReadStore, { provider = null, publicUrl = null, log }: ApiOptions) {
  if (provider === null && publicUrl === null) return null
  const { openVerifiers } = await import('../../http/access/open-verifiers.ts')
  return openVerifiers({
    provider,
    publicUrl,
    findKey: kid => store.findKey(kid),
    coversCustomer: (id, customerId) => store.coversCustomer(id, customerId),
    onProblem: err => log.warn({ err }, 'the keys of the identity provider could not be read'),
  })
}

async function explainUnready(checked: Promise<void>): Promise<string | null> {
  try {
    await checked
    return null
  } catch (error) {
    return error instanceof ApiError ? error.message : 'The store cannot be read.'
  }
}
