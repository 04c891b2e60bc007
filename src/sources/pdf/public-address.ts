/** Tells whether an IP address is public, by IANA's special-purpose registries. Sends requests that connect only to public addresses. */
import { type LookupAddress, lookup } from 'node:dns'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { request as requestHttp } from '../calls/node-http.ts'
import { SourceError } from '../source.ts'

// One list for each address family. In a common list, an IPv6 range that covers ::ffff:0:0/96 would match every IPv4 address.
const special4 = createBlockList('ipv4', [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24',
  '192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
])

// IANA gives out public addresses only from 2000::/3. The other ranges hold ::, ::1, embedded IPv4 addresses, fc00::/7, fe80::/10 and
// ff00::/8.
const special6 = createBlockList('ipv6', [
  '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
])

function createBlockList(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges.join(' ').split(' ')) {
    const [network = '', prefix] = range.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

/** Returns false for text that is no IP address, and for an address with a zone such as fe80::1%eth0. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return false
  return family === 4 ? !special4.check(address, 'ipv4') : !special6.check(address, 'ipv6')
}

export function refuseAddress(): SourceError {
  return new SourceError('failed', 'The PDF is at an address that is not public.')
}

/**
 * Resolves a host name to its public addresses only. The connection uses this result without a second lookup, so that the name cannot
 * become private in between.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error, '')
    const addresses = found.filter(({ address }) => isPublicAddress(address))
    const [first] = addresses as [LookupAddress?]
    if (first === undefined) callback(refuseAddress(), '')
    else if (options.all === true) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

/** The server closed the connection without a response and without an error, for example because it expects another protocol. */
export class NoResponse extends Error {}

/** The connection was silent for longer than the request's timeout. */
class Idle extends Error {
  readonly code = 'ETIMEDOUT'
}

/** Sends a request over a new connection and without a proxy. Node's global agent may be configured to use a proxy. */
export function requestOnce(url: URL, allowPrivate: boolean, options: RequestOptions, body?: string) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const own = { ...options, agent: false, ...(allowPrivate ? {} : { lookup: lookupPublic }) }
    const request =
      url.protocol === 'https:'
        ? requestHttps(url, { ...own, rejectUnauthorized: true })
        : requestHttp(url, own)
    let response: IncomingMessage | undefined
    request.on('response', given => {
      response = given
      resolve(given)
    })
    request.on('timeout', () => (response ?? request).destroy(new Idle()))
    request.on('error', reject)
    request.on('close', () => reject(new NoResponse()))
    request.end(body)
  })
}
