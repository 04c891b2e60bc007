/** Addresses that name several hosts, as libpq takes them. */

/** What a host must be, in SQL. The API's own sessions are read-only everywhere: for them, the primary is what is no standby. */
export const fitness = new Map([
  ['any', 'true'],
  ['read-write', 'NOT pg_is_in_recovery()'],
  ['primary', 'NOT pg_is_in_recovery()'],
  ['read-only', 'pg_is_in_recovery()'],
  ['standby', 'pg_is_in_recovery()'],
])
export const takesWrites = "current_setting('transaction_read_only') = 'off'"

const parts = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/

/** One address for each host, and what a host must be, unless that is unknown; null where the address names one host, whatever it is. */
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
