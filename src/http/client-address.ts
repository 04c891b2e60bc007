import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'

/**
 * Fastify follows X-Forwarded-For as far as proxies are trusted. If the result is no address, the connection's own
 * address counts.
 */
export function clientAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  return readAddress(ip) ?? plainAddress(socket.remoteAddress ?? '')
}

/** Null when the text is no address, for example `unknown`. Some proxies add the client's port, which is left out. */
function readAddress(text: string): string | null {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text.trim()) ?? []
  const address = plainAddress(bracketed ?? plain ?? text.trim())
  return isIP(address) === 0 ? null : address
}

/** Returns an IPv4 address in its own form, even when it was written as an IPv6 address. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}
