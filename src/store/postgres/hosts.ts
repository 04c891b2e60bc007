/** Addresses with several hosts, in the format of libpq. A process on SQLite reads this file too, so it does not load the driver. */

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
