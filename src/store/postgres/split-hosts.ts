/** Addresses that name several hosts, as libpq takes them. */

const sessionAttrs = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type SessionAttrs = (typeof sessionAttrs)[number]

const parts = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/
const parameter = 'target_session_attrs'

/** Null where the address names one host, whatever it is. */
export function splitHosts(url: string) {
  const [, login = '', hosts = '', rest = ''] = parts.exec(url) ?? []
  const [path, query = ''] = rest.split('?')
  const parameters = new URLSearchParams(query)
  const wanted = parameters.get(parameter)
  if (!hosts.includes(',') && wanted === null) return null
  parameters.delete(parameter)
  const end = `${path}${parameters.size === 0 ? '' : `?${parameters}`}`
  const isKnown = wanted === null || (sessionAttrs as readonly string[]).includes(wanted)
  return {
    urls: hosts.split(',').map(host => login + host + end),
    wanted: ((isKnown ? wanted : null) as SessionAttrs | null) ?? 'any',
    /** The fault of `target_session_attrs`, as in "must be …"; null when there is none. */
    problem: isKnown ? null : `must have one of ${sessionAttrs.join(', ')} as ${parameter}`,
  }
}

/** The hosts and ports of an address, and no more: it may hold a password. */
export function hostsOf(url: string): string {
  return parts.exec(url)?.[2] ?? ''
}
