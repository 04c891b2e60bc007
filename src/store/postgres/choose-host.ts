/** Chooses among the hosts of an address. Each new connection goes to the first host that fits. */
import pg from 'pg'
import { StoreUnavailable } from '../store.ts'

/** Tries the hosts in their order. They share the time limit of one connection. */
export function chooseHosts(configs: readonly pg.ClientConfig[], fits: string) {
  return async () => {
    let failure: unknown = new StoreUnavailable(`None of the hosts in the address fits: ${fits}.`)
    for (const config of configs) {
      const patience = (config.connectionTimeoutMillis ?? 0) / configs.length
      const limits = { connectionTimeoutMillis: patience, query_timeout: patience }
      const client = new pg.Client({ ...config, ...limits }).on('error', () => {})
      const { host, port } = client
      try {
        await client.connect()
        const { rows } = await client.query(`SELECT ${fits} AS fits`)
        if (rows[0].fits) return { host, port }
      } catch (error) {
        failure = Object.assign(error as Error, { triedAddress: `${host}:${port}` })
      } finally {
        client.end().catch(() => {})
      }
    }
    throw failure
  }
}
