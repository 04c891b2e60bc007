/** The address that a request comes from, behind proxies that are trusted to name it. */
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'

/** Fastify follows X-Forwarded-For as far as proxies are trusted. Where that leads to no address, the connection's own counts. */
export function clientAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  return readAddress(ip) ?? plainAddress(socket.remoteAddress ?? '')
}

/** Null for what is no address, such as `unknown`. Some proxies add the client's port, which is left out. */
function readAddress(text: string): string | null {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text.trim()) ?? []
  const address = plainAddress(bracketed ?? plain ?? text.trim())
  return isIP(address) === 0 ? null : address
}

/** An IPv4 address as such, also where it was written as an IPv6 one. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=[\d.]+$)/i, '')
}
