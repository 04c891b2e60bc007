/** The admin port, in the process that was started: beside the API, or beside the workers that serve it. */
import { once } from 'node:events'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { AdminOptions } from '../../admin/admin-server.ts'
import { CliError } from '../terminal/cli-error.ts'
import { closeGently } from './close-connections.ts'
import { explainListening } from './explain-listening.ts'

export interface AdminPort extends Omit<AdminOptions, 'askReady' | 'log'> {
  host: string
  port: number
}

/** How long the API has to say whether it is ready. */
const readyWithinMs = 2_000

/**
 * Listens, does the work, and stops listening when it ended. The work tells where the API listens, as soon as it does: until
 * then, `/ready` is 503. With null, there is no admin port.
 */
export async function besideAdmin(
  port: AdminPort | null,
  log: Logger,
  work: (serves: (address: string) => void) => Promise<void>,
): Promise<void> {
  if (port === null) return work(() => {})
  let apiAddress: string | null = null
  const { createAdminServer } = await import('../../admin/admin-server.ts')
  const askReady = async () => (apiAddress === null ? 'The service is starting.' : askApi(apiAddress))
  const server = createAdminServer({ ...port, askReady, log })
  server.listen(port.port, port.host)
  await once(server, 'listening').catch(error => {
    const names = { host: 'ADMIN_HOST', port: 'ADMIN_PORT' }
    throw new CliError(explainListening(error, port, names), { cause: error })
  })
  const { address, family, port: taken } = server.address() as AddressInfo
  const host = family === 'IPv6' ? `[${address}]` : address
  log.info({ address: `http://${host}:${taken}` }, 'listening for administration')
  try {
    await work(found => {
      apiAddress = found
    })
  } finally {
    await closeGently(server, async () => {
      server.close()
      await once(server, 'close')
    })
  }
}

/** Why the API is not ready, or null. It is asked over its own port: with workers, only they know. */
function askApi(address: string): Promise<string | null> {
  const away = 'The service does not answer.'
  return new Promise(resolve => {
    const request = get(`${address}/ready`, { agent: false, timeout: readyWithinMs }, response => {
      response.resume()
      resolve(response.statusCode === 200 ? null : 'The service is not ready, or about to end.')
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(away))
  })
}
