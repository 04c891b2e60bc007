/** Public addresses, after IANA's registries of special-purpose addresses; and requests to these alone. */
import { type LookupAddress, lookup } from 'node:dns'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { request as requestHttp } from '../calls/node-http.ts'
import { SourceError } from '../source.ts'

// One list a family: in a list of both, an IPv6 range that covers ::ffff:0:0/96 would match every IPv4 address.
const special4 = createBlockList('ipv4', [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24',
  '192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3',
])

// Only 2000::/3 is given out. The rest holds ::, ::1, what embeds an IPv4 address, fc00::/7, fe80::/10 and ff00::/8.
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

/** False too for what is no address, and for one with a zone (fe80::1%eth0). */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return false
  return family === 4 ? !special4.check(address, 'ipv4') : !special6.check(address, 'ipv6')
}

export function refuseAddress(): SourceError {
  return new SourceError('failed', 'The PDF is at an address that is not public.')
}

/** Resolves a name to its public addresses alone. The connection does not resolve again: a name cannot turn private in between. */
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

/** The connection was closed without a response and without an error, as by a server that wants another protocol. */
export class NoResponse extends Error {}

/** Nothing came for the time-out of the request. */
class Idle extends Error {
  readonly code = 'ETIMEDOUT'
}

/** Sends a request over a connection of its own, and directly: Node's global agent may be set to go through a proxy. */
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
