/** The address that a request comes from, behind proxies that are trusted to name it. */
import type { IncomingMessage } from 'node:http'
import { type BlockList, isIP } from 'node:net'

export type AddressOf = (request: IncomingMessage) => string

/**
 * An address that a trusted proxy names is believed; one that this address names, only if it is trusted too. So the walk goes
 * from right to left, and never reaches a client's own entries. Of both headers, one may be the client's: they must agree.
 */
export function createAddressOf(trusted: BlockList | null): AddressOf {
  const isTrusted = (address: string) =>
    trusted?.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') === true

  function walk(start: string, named: readonly string[]): string {
    let address = start
    for (const next of named.toReversed()) {
      if (!isTrusted(address)) break
      const given = readAddress(next)
      if (given === null) break
      address = given
    }
    return address
  }

  return ({ socket: { remoteAddress = '' }, headers }) => {
    const start = plainAddress(remoteAddress)
    if (!isTrusted(start)) return start
    const { 'x-forwarded-for': list, forwarded } = headers
    const first = list === undefined ? null : walk(start, String(list).split(','))
    const second = forwarded === undefined ? null : walk(start, readForwarded(forwarded))
    return (first ?? second) === (second ?? first) ? (first ?? second ?? start) : start
  }
}

/** RFC 7239: the values of `for`, in their order; empty where a proxy names nobody. */
function readForwarded(header: string): string[] {
  const elements = header.match(/(?:"(?:[^"\\]|\\.)*"|[^",])+/g) ?? []
  return elements.map(element => /(?:^|;)\s*for=("?)([^";]*)\1\s*(?:;|$)/i.exec(element)?.[2] ?? '')
}

/** Null for what is no address, such as `unknown`. A port is left out. */
function readAddress(text: string): string | null {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text.trim()) ?? []
  const address = plainAddress(bracketed ?? plain ?? text.trim())
  return isIP(address) === 0 ? null : address
}

/** An IPv4 address as such, also where it was written as an IPv6 one. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}
