/** The admin port of a process. The API or the connector of the process reports to the admin port through an `AdminChannel`. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { AdminOptions } from '../../http/admin/admin-server.ts'
import { closeGently } from '../../http/server/close-connections.ts'
import type { adminOf } from '../settings/connections.ts'
import { CliError } from '../terminal/cli-error.ts'
import { explainListening } from './explain-listening.ts'
import type { gatherMetrics, MeasuredStore } from './gather-metrics.ts'

/** Reports to the admin port. When there is no admin port, the calls do nothing. */
export interface AdminChannel extends Pick<ReturnType<typeof gatherMetrics>, 'count' | 'addThread'> {
  /** Call when the API listens. Before this call, `/ready` answers 503. */
  serves(api: Pick<AdminOptions, 'askReady'>): void
  /** Call when a process without an API has begun its work. From then on `/ready` answers 200. */
  runs(): void
}

const noChannel: AdminChannel = { serves() {}, runs() {}, count() {}, addThread() {} }

/** Runs `work` and listens on the admin port until `work` ends. When `port` is null, there is no admin port. */
export async function withAdminPort(
  port: ReturnType<typeof adminOf>,
  store: MeasuredStore,
  log: Logger,
  work: (channel: AdminChannel) => Promise<void>,
): Promise<void> {
  if (port === null) return work(noChannel)
  let askReady: AdminOptions['askReady'] = async () => 'The service is starting.'
  const { createAdminServer } = await import('../../http/admin/admin-server.ts')
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
      serves(api) {
        askReady = api.askReady
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
