/** The settings of browsers, of the admin port and of customer links: a part of the table in settings.ts. */
import {
  parseLinkKey,
  parseMatch,
  parseNetworks,
  parseOrigins,
  parsePort,
  parseSwitch,
  unless,
} from './parsers.ts'

export const accessSettings = {
  CORS_ORIGINS: {
    default: 'none',
    flag: '--cors-origins <origins>',
    meaning:
      'Origins (scheme, host and port) whose pages may [call the API](access.md#calls-from-a-browser), separated by commas, like `https://app.example.com`.',
    parse: unless('none', parseOrigins),
  },
  TRUSTED_PROXIES: {
    default: 'none',
    flag: '--trusted-proxies <addresses>',
    meaning:
      'Addresses or networks (CIDR) of [proxies](access.md#behind-a-proxy) in front of the service, separated by commas, like `127.0.0.1,10.0.0.0/8`. The client that they name counts for limits and in the log.',
    parse: unless('none', parseNetworks),
  },
  ADMIN_PORT: {
    default: 'off',
    flag: '--admin-port <port>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The [admin port](admin.md), 0 to 65535, where 0 takes a free one; or `off`. Needs `ADMIN_TOKEN`.',
    parse: unless('off', parsePort),
  },
  ADMIN_HOST: {
    default: '127.0.0.1',
    flag: '--admin-host <address>',
    commands: ['serve', 'up', 'sync'],
    meaning: 'Address that the admin port listens on. Clients must not reach it.',
    parse: (text: string) => text,
  },
  ADMIN_TOKEN: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning: 'Token of the admin port: 20 to 200 visible ASCII characters, without spaces.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(/^[!-~]{20,200}$/, 'must be 20 to 200 visible ASCII characters, without spaces'),
    ),
  },
  LINK_KEY: {
    default: 'none',
    meaning:
      'Private key (JWK) that `fatura key add` printed. `fatura link` and the [admin port](admin.md) sign [customer links](access.md#customer-links) with it.',
    isSecret: true,
    parse: unless('none', parseLinkKey),
  },
  MCP: {
    default: 'off',
    flag: '--mcp <on|off>',
    meaning:
      'Whether assistants may read invoices at `/mcp`, by the [Model Context Protocol](api.md#mcp), with the same tokens. `on` or `off`. Under a name other than `localhost` it needs `PUBLIC_URL`.',
    parse: parseSwitch,
  },
} as const
