/** Settings of browsers, of the admin port and of customer links. settings.ts includes this table. */
import { isIP } from 'node:net'
import { type LinkKey, readLinkKey } from '../../sdk/link.ts'
import {
  optional,
  parseList,
  parseMatch,
  parseOrigins,
  parsePort,
  parseSwitch,
  readWhole,
  refuse,
  unless,
} from './parsers.ts'

export const accessSettings = {
  CORS_ORIGINS: optional({
    flag: '--cors-origins <origins>',
    meaning:
      'Origins (scheme, host and port) whose pages may [call the API](access.md#calls-from-a-browser), separated by commas, for example `https://app.example.com`. By default, no page of another origin may call it.',
    parse: parseOrigins,
  }),
  TRUSTED_PROXIES: optional({
    flag: '--trusted-proxies <addresses>',
    meaning:
      'Addresses or networks (CIDR) of the [proxies](access.md#behind-a-proxy) in front of the service, separated by commas, for example `127.0.0.1,10.0.0.0/8`. Limits and the log use the client address that these proxies send.',
    parse: parseNetworks,
  }),
  ADMIN_PORT: {
    default: 'off',
    flag: '--admin-port <port>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Number of the [admin port](admin.md), 0 to 65535. 0 takes a free port. `off` opens no admin port. An admin port needs `ADMIN_TOKEN`.',
    parse: unless('off', parsePort),
  },
  ADMIN_HOST: {
    default: '127.0.0.1',
    flag: '--admin-host <address>',
    commands: ['serve', 'up', 'sync'],
    meaning: 'Address that the admin port listens on. Choose one that clients cannot reach.',
    parse: (text: string) => text,
  },
  ADMIN_TOKEN: optional({
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Token that requests to the admin port must send: 20 to 200 visible ASCII characters, without spaces.',
    isSecret: true,
    parse: parseMatch(/^[!-~]{20,200}$/, 'must be 20 to 200 visible ASCII characters, without spaces'),
  }),
  CUSTOMER_LINK_KEY: optional({
    meaning:
      'Private key (JWK) that `fatura key add` printed. `fatura link` and the [admin port](admin.md) sign [customer links](access.md#customer-links) with it.',
    isSecret: true,
    parse: parseLinkKey,
  }),
  MCP: {
    default: 'off',
    flag: '--mcp <on|off>',
    meaning:
      'Whether AI assistants may read invoices at `/mcp`: `on` or `off`. They use the [Model Context Protocol](api.md#mcp) and the same tokens as the API. If clients reach the service under a name other than `localhost`, also set `PUBLIC_URL`.',
    parse: parseSwitch,
  },
} as const

function parseLinkKey(text: string): LinkKey {
  try {
    return readLinkKey(text)
  } catch {
    return refuse('must be the private key that "fatura key add" printed: JSON with kty, crv, kid, x and d')
  }
}

export function parseNetworks(text: string): readonly string[] {
  return parseList(
    isNetwork,
    'must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, separated by commas, or none',
  )(text)
}

/**
 * Whether the text is an address or a network (CIDR). A prefix length of 0 is refused. A proxy network of all addresses would let any
 * client claim any address.
 */
function isNetwork(text: string): boolean {
  const [address = '', length = null, ...rest] = text.split('/')
  const version = isIP(address)
  const maxLength = version === 4 ? 32 : 128
  return (
    version !== 0 && rest.length === 0 && (length === null || readWhole(length, 1, maxLength) !== undefined)
  )
}
