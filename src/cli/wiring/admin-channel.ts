/** The admin port of the started process, beside the API, its workers or the connector; and messages from these to it. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { AdminOptions } from '../../admin/admin-server.ts'
import { request } from '../../node-http.ts'
import { closeGently } from '../../server/close-connections.ts'
import type { adminOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import { explainListening } from './explain-listening.ts'
import type { gatherMetrics, MeasuredStore } from './gather-metrics.ts'

/** Messages to the admin port; dropped if there is none. */
export interface AdminChannel
  extends Pick<ReturnType<typeof gatherMetrics>, 'count' | 'addPeer' | 'removePeer'> {
  /** The API listens here: until then, `/ready` is 503. */
  serves(address: string): void
  /** Work without an API has begun: `/ready` is 200. */
  runs(): void
}

const noChannel: AdminChannel = { serves() {}, runs() {}, count() {}, addPeer() {}, removePeer() {} }

const readyWithinMs = 2_000

/** Listens while the work goes on. With null, there is no admin port. */
export async function withAdminPort(
  port: ReturnType<typeof adminOf>,
  store: MeasuredStore,
  log: Logger,
  work: (channel: AdminChannel) => Promise<void>,
): Promise<void> {
  if (port === null) return work(noChannel)
  let askReady: AdminOptions['askReady'] = async () => 'The service is starting.'
  const { createAdminServer } = await import('../../admin/admin-server.ts')
  const { gatherMetrics } = await import('./gather-metrics.ts')
  const metrics = gatherMetrics(store, log)
  const server = createAdminServer({ ...port, writeMetrics: metrics.write, log, askReady: () => askReady() })
  server.listen(port.port, port.host)
  await once(server, 'listening').catch(error => {
    const names = { host: 'ADMIN_HOST', port: 'ADMIN_PORT' }
    throw new CliError(explainListening(error, port, names), { cause: error })
  })
  const { address, family, port: taken } = server.address() as AddressInfo
  const host = family === 'IPv6' ? `[${address}]` : address
  log.info({ address: `http://${host}:${taken}` }, 'listening for administration')
  try {
    await work({
      ...metrics,
      serves(found) {
        askReady = () => askApi(found)
      },
      runs() {
        askReady = async () => null
      },
    })
  } finally {
    await closeGently(server)
    await metrics.close()
  }
}

/** The reason why the API is not ready, or null. It is asked over its own port: with workers, only they know. */
function askApi(address: string): Promise<string | null> {
  return new Promise(resolve => {
    const asking = request(`${address}/ready`, { agent: false, timeout: readyWithinMs }, response => {
      response.resume()
      resolve(response.statusCode === 200 ? null : 'The service is not ready, or about to end.')
    })
    asking.on('timeout', () => asking.destroy())
    asking.on('error', () => resolve('The service does not answer.'))
    asking.end()
  })
}
