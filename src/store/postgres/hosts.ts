/** Addresses with several hosts, in the format of libpq. Each new connection goes to the first host that fits. */
import pg from 'pg'
import { StoreUnavailable } from '../store.ts'

/**
 * SQL conditions for a host, by `target_session_attrs`. The API's sessions are read-only on every host, so a primary is a host that is not
 * a standby.
 */
export const fitness = new Map([
  ['any', 'true'],
  ['read-write', 'NOT pg_is_in_recovery()'],
  ['primary', 'NOT pg_is_in_recovery()'],
  ['read-only', 'pg_is_in_recovery()'],
  ['standby', 'pg_is_in_recovery()'],
])
export const takesWrites = "current_setting('transaction_read_only') = 'off'"

const parts = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/

/**
 * Returns one address for each host, and the condition that a host must meet. The condition is undefined for an unknown
 * `target_session_attrs`. Returns null for an address with one host and no condition.
 */
export function splitHosts(url: string) {
  const [, login = '', hosts = '', rest = ''] = parts.exec(url) ?? []
  const [path, query = ''] = rest.split('?')
  const parameters = new URLSearchParams(query)
  const wanted = parameters.get('target_session_attrs')
  if (!hosts.includes(',') && wanted === null) return null
  parameters.delete('target_session_attrs')
  const end = `${path}${parameters.size === 0 ? '' : `?${parameters}`}`
  return { urls: hosts.split(',').map(host => login + host + end), fits: fitness.get(wanted ?? 'any') }
}

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
