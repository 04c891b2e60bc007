/**
 * Every setting, once. From this table follow the flags and `--help`, the rows of docs/configuration.md (`npm run settings`),
 * the checks of `fatura doctor`, and the type of each value, which its `parse` returns.
 */
import { findAddressProblem, splitAddresses } from '../../store/engines.ts'
import { accessSettings } from './access-settings.ts'
import { pageSettings } from './page-settings.ts'
import {
  parseClaimText,
  parseDays,
  parseDurationMs,
  parseKeySetUrl,
  parseMatch,
  parseOneOf,
  parsePort,
  parseRateLimit,
  parseSecondsMs,
  parseSecureUrl,
  parseSwitch,
  parseWorkers,
  refuse,
  unless,
} from './parsers.ts'
import { sourceSettings } from './source-settings.ts'

export type Service = 'serve' | 'up' | 'sync'

export interface SettingDefinition {
  /** A text that `parse` takes, as any other value. */
  default: string
  /** Environment only without one. A secret has no flag, because other users of the machine can read a command line. */
  flag?: string
  /** The services that take it; `serve` and `up` when left out. */
  commands?: readonly Service[]
  /** Markdown for the docs; `--help` shows it as plain text. */
  meaning: string
  /** Whether the value may be or hold a secret: then no message repeats it. */
  isSecret?: true
  /** Throws what `refuse` throws. */
  parse(text: string): unknown
}

function parseAddress(text: string): string {
  const problem = findAddressProblem(text)
  return problem === null ? text : refuse(problem)
}

/** Addresses of one store, or of several servers that serve the same one. */
function parseAddresses(text: string): string {
  const addresses = splitAddresses(text).map(parseAddress)
  if (addresses.length > 1 && addresses.some(address => address.startsWith('sqlite:')))
    return refuse('must be one address, or several of PostgreSQL with commas between them')
  return addresses.join(',')
}

const usualReadUrl = 'as DATABASE_URL'

export const settings = {
  DATABASE_URL: {
    default: 'sqlite:data/fatura.db',
    flag: '--database-url <url>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The address of the store: `sqlite:` and the path of a file, relative to the working directory or absolute (`sqlite:/var/lib/fatura/fatura.db`); or `postgres://user:password@host:5432/name`, [with several hosts](postgresql.md#failover) for failover.',
    isSecret: true,
    parse: parseAddress,
  },
  DATABASE_READ_URL: {
    default: usualReadUrl,
    flag: '--database-read-url <url>',
    meaning:
      'The address that the API reads from, if not `DATABASE_URL`: [a replica of the same store](postgresql.md#reading-from-a-replica). Several addresses of servers, with commas between them, are read from in turn: [nodes of Citus](citus.md), or replicas.',
    isSecret: true,
    parse: unless(usualReadUrl, parseAddresses),
  },
  HOST: {
    default: '127.0.0.1',
    flag: '--host <address>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'The address to listen on, for the API and for webhooks; `0.0.0.0` or `::` listens on every interface.',
    parse: text => text,
  },
  PORT: {
    default: '3000',
    flag: '--port <port>',
    meaning: 'The port to listen on, 0 to 65535; 0 takes a free one.',
    parse: parsePort,
  },
  PUBLIC_URL: {
    default: 'none',
    flag: '--public-url <url>',
    meaning:
      'The address under which clients reach the API, as in `https://billing.example.com`. [Customer links](access.md#customer-links) are made for it, and work only where it is set.',
    parse: unless('none', parseSecureUrl('https://billing.example.com')),
  },
  AUTH_JWKS_URL: {
    default: 'none',
    meaning:
      'The address of the keys (JWKS) of the [identity provider](access.md#jwts-of-an-identity-provider). `AUTH_JWKS_URL`, `AUTH_ISSUER` and `AUTH_AUDIENCE` are set together.',
    isSecret: true,
    parse: unless('none', parseKeySetUrl),
  },
  AUTH_ISSUER: {
    default: 'none',
    meaning: 'The claim `iss` of its tokens, exactly.',
    parse: unless('none', parseClaimText),
  },
  AUTH_AUDIENCE: {
    default: 'none',
    meaning: 'The value that the claim `aud` of its tokens must be or contain, exactly.',
    parse: unless('none', parseClaimText),
  },
  AUTH_CUSTOMER_CLAIM: {
    default: 'customer_id',
    meaning: 'The claim that names the customers whom a token may read: an ID, or a list of IDs.',
    parse: parseClaimText,
  },
  AUTH_SCOPE: {
    default: 'none',
    meaning: 'A scope that every token of the provider must have, in its claim `scope` or `scp`.',
    parse: unless('none', parseMatch(/^[!#-[\]-~]{1,200}$/, 'must be one scope, without spaces or quotes')),
  },
  AUTH_TYP: {
    default: 'none',
    meaning:
      'The header `typ` that every token of the provider must have, such as `at+jwt`. Without it, `JWT`, `at+jwt` and none are accepted.',
    parse: unless('none', parseMatch(/^[\w!#$&^.+/-]{1,100}$/, 'must be a type, such as at+jwt')),
  },
  READY_MAX_LAG: {
    default: 'off',
    flag: '--ready-max-lag <duration>',
    meaning:
      'Highest age of the records at which `/ready` answers 200, such as `90s`, `30m` or `1h`; or `off`. Every process that serves the store then answers 503 at the same time: use it where something else serves instead.',
    parse: unless('off', parseDurationMs),
  },
  ...accessSettings,
  ...sourceSettings,
  RATE_LIMIT: {
    default: '6000/m',
    flag: '--rate-limit <limit>',
    meaning: 'Limit of requests for each token and process: a number, `/`, and `s`, `m` or `h`; or `off`.',
    parse: unless('off', parseRateLimit),
  },
  ...pageSettings,
  CHANGES_KEPT_DAYS: {
    default: '90',
    flag: '--changes-kept-days <days>',
    commands: ['up', 'sync'],
    meaning: 'Number of days for which [changes](api.md#changes) are kept, 1 to 3650. Older cursors expire.',
    parse: parseDays,
  },
  ENDPOINTS_PRIVATE: {
    default: 'off',
    flag: '--endpoints-private <on|off>',
    commands: ['up', 'sync'],
    meaning:
      'Whether [webhooks](sync.md#webhooks-to-your-programs) may be sent over plain http, and to private and loopback addresses. `on` or `off`.',
    parse: parseSwitch,
  },
  LOG_LEVEL: {
    default: 'info',
    flag: '--log-level <level>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Lowest level that is logged: `debug`, `info` (a line for each request), `warn`, `error` or `silent`.',
    parse: parseOneOf(['debug', 'info', 'warn', 'error', 'silent']),
  },
  SHUTDOWN_DELAY: {
    default: '5s',
    flag: '--shutdown-delay <seconds>',
    meaning:
      'Time to continue serving after SIGTERM, while `/ready` answers 503: a number of seconds and `s`, `0s` to `600s`. Ctrl-C does not wait. See [stopping](run.md#stopping).',
    parse: parseSecondsMs(600),
  },
  WORKERS: {
    default: '1',
    flag: '--workers <count>',
    commands: ['serve'],
    meaning:
      'Number of processes that serve the address, 1 to 256; `auto` is one for each core. See [several processes](run.md#several-processes).',
    parse: parseWorkers,
  },
} as const satisfies Record<string, SettingDefinition>

export type Setting = keyof typeof settings

/** The type of each setting's value. */
export type Settings = { [K in Setting]: ReturnType<(typeof settings)[K]['parse']> }

export const settingNames = Object.keys(settings) as Setting[]

export type SettingOf<Command extends Service> = {
  [K in Setting]: (typeof settings)[K] extends { commands: readonly (infer Other)[] }
    ? Command extends Other
      ? K
      : never
    : Command extends 'sync'
      ? never
      : K
}[Setting]

/** The settings that a service takes. */
export function settingsOf<Command extends Service>(command: Command): SettingOf<Command>[] {
  const isTaken = (name: Setting) => {
    const { commands = ['serve', 'up'] }: SettingDefinition = settings[name]
    return commands.includes(command)
  }
  return settingNames.filter(isTaken) as SettingOf<Command>[]
}
