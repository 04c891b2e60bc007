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
      'The origins (scheme, host and port) whose pages may call the API from a browser, separated by commas, like `https://app.example.com`. See [calls from a browser](access.md#calls-from-a-browser).',
    parse: unless('none', parseOrigins),
  },
  TRUSTED_PROXIES: {
    default: 'none',
    flag: '--trusted-proxies <addresses>',
    meaning:
      'The addresses or networks (CIDR) of [proxies](access.md#behind-a-proxy) in front of the service, separated by commas, like `127.0.0.1,10.0.0.0/8`. The client whom they name in `X-Forwarded-For` or `Forwarded` is the one that counts for limits and in the log.',
    parse: unless('none', parseNetworks),
  },
  ADMIN_PORT: {
    default: 'off',
    flag: '--admin-port <port>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The port of the [admin port](admin.md), 0 to 65535, where 0 takes a free one; or `off`. Needs `ADMIN_TOKEN`.',
    parse: unless('off', parsePort),
  },
  ADMIN_HOST: {
    default: '127.0.0.1',
    flag: '--admin-host <address>',
    commands: ['serve', 'up', 'sync'],
    meaning: 'The address that the admin port listens on. Keep it on an address that clients cannot reach.',
    parse: (text: string) => text,
  },
  ADMIN_TOKEN: {
    default: 'none',
    commands: ['serve', 'up', 'sync'],
    meaning: 'The token that the admin port asks for: 20 to 200 visible ASCII characters, without spaces.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(/^[!-~]{20,200}$/, 'must be 20 to 200 visible ASCII characters, without spaces'),
    ),
  },
  LINK_KEY: {
    default: 'none',
    meaning:
      'The private key that `fatura key add` printed, a JWK. `fatura link`, and `POST /links` of the [admin port](admin.md), sign [customer links](access.md#customer-links) with it.',
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
