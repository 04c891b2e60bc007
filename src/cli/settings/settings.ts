/**
 * The table of all settings. The flags, `--help`, docs/configuration.md (`npm run tables`), the checks of `fatura doctor` and the types of
 * the values all come from this table.
 */
import { findAddressProblem } from '../../store/engines.ts'
import { accessSettings } from './access-settings.ts'
import { pageSettings } from './page-settings.ts'
import {
  optional,
  parseClaimText,
  parseDelayMs,
  parseDurationMs,
  parseKeySetUrl,
  parseMatch,
  parsePort,
  parsePublicUrl,
  parseRateLimit,
  parseSwitch,
  parseWhole,
  refuse,
  unless,
} from './parsers.ts'
import { sourceSettings } from './source-settings.ts'

export type Service = 'serve' | 'up' | 'sync'

export interface SettingDefinition {
  /** Default value as text. `parse` has to accept this text. */
  default: string
  /**
   * A setting without a flag is read from the environment only. Secrets have no flag, because other users of the machine can read a command
   * line.
   */
  flag?: string
  /** Services that use the setting. Default: `serve` and `up`. */
  commands?: readonly Service[]
  /** Markdown for the docs. `--help` shows the text without the marks. */
  meaning: string
  /**
   * Whether the value may be a secret or contain one. No message repeats a secret value, and the value may stand in a file (see
   * `fileVariable`).
   */
  isSecret?: true
  /** Throws an `InvalidSetting` when the text is wrong. */
  parse(text: string): unknown
}

function parseAddress(text: string): string {
  const problem = findAddressProblem(text)
  return problem === null ? text : refuse(problem)
}

const defaultReadUrl = 'as DATABASE_URL'

export const settings = {
  DATABASE_URL: {
    default: 'sqlite:data/fatura.db',
    flag: '--database-url <url>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Address of the store. For SQLite it is `sqlite:` and the path of a file, for example `sqlite:/var/lib/fatura/fatura.db`. The path may be relative to the working directory. For PostgreSQL it is `postgres://user:password@host:5432/name`, also [with several hosts](postgresql.md#failover).',
    isSecret: true,
    parse: parseAddress,
  },
  DATABASE_READ_URL: {
    default: defaultReadUrl,
    flag: '--database-read-url <url>',
    meaning:
      'Address of the database that the API reads from, for example [a replica](postgresql.md#reading-from-a-replica). By default the API reads from `DATABASE_URL`.',
    isSecret: true,
    parse: unless(defaultReadUrl, parseAddress),
  },
  HOST: {
    default: '127.0.0.1',
    flag: '--host <address>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Address that the API and the receiver of webhooks listen on. `0.0.0.0` or `::` listens on all network interfaces.',
    parse: text => text,
  },
  PORT: {
    default: '3000',
    flag: '--port <port>',
    meaning: 'Port that the API listens on, 0 to 65535. 0 takes a free port.',
    parse: parsePort,
  },
  PUBLIC_URL: optional({
    flag: '--public-url <url>',
    meaning:
      'Address at which clients reach the API: scheme and host, without a path, for example `https://billing.example.com`. Set it to use [customer links](access.md#customer-links).',
    parse: parsePublicUrl,
  }),
  AUTH_JWKS_URL: optional({
    meaning:
      'Address of the keys (JWKS) of the [identity provider](access.md#jwts-of-an-identity-provider). Set it together with `AUTH_ISSUER` and `AUTH_AUDIENCE`.',
    isSecret: true,
    parse: parseKeySetUrl,
  }),
  AUTH_ISSUER: optional({
    meaning: 'The exact value of the claim `iss` in the tokens of the identity provider.',
    parse: parseClaimText,
  }),
  AUTH_AUDIENCE: optional({
    meaning: 'The value that the claim `aud` must be or contain in the tokens of the identity provider.',
    parse: parseClaimText,
  }),
  AUTH_CUSTOMER_CLAIM: {
    default: 'customer_id',
    meaning:
      'Name of the claim that holds the customers that a token of the identity provider may read. The claim holds one customer ID or a list of IDs.',
    parse: parseClaimText,
  },
  AUTH_SCOPE: optional({
    meaning:
      'A scope that each token of the identity provider must have in the claim `scope` or `scp`. By default no scope is needed.',
    parse: parseMatch(/^[!#-[\]-~]{1,200}$/, 'must be one scope, without spaces or quotes'),
  }),
  AUTH_TYP: optional({
    meaning:
      'The header `typ` that each token of the identity provider must have, for example `at+jwt`. By default, tokens with `JWT`, with `at+jwt` and without a `typ` are accepted.',
    parse: parseMatch(/^[\w!#$&^.+/-]{1,100}$/, 'must be a token type, for example at+jwt'),
  }),
  READY_MAX_LAG: {
    default: 'off',
    flag: '--ready-max-lag <duration>',
    meaning:
      'Maximum age of the records at which `/ready` answers 200, for example `90s`, `30m` or `1h`. `off` sets no maximum. Older records make all processes of the store answer 503 together, so use this setting only when something else can serve instead.',
    parse: unless('off', parseDurationMs),
  },
  ...accessSettings,
  ...sourceSettings,
  RATE_LIMIT: {
    default: '6000/m',
    flag: '--rate-limit <limit>',
    meaning:
      'Maximum number of requests that each token may send to one process per second, minute or hour: a number, `/`, and `s`, `m` or `h`. `off` sets no limit.',
    parse: unless('off', parseRateLimit),
  },
  ...pageSettings,
  CHANGES_KEPT_DAYS: {
    default: '90',
    flag: '--changes-kept-days <days>',
    commands: ['up', 'sync'],
    meaning:
      'Number of days for which [changes](api.md#changes) are kept, 1 to 3650. A cursor that is older than this expires.',
    parse: parseWhole(1, 3_650),
  },
  OUTGOING_WEBHOOKS_PRIVATE: {
    default: 'off',
    flag: '--outgoing-webhooks-private <on|off>',
    commands: ['up', 'sync'],
    meaning:
      'Whether [outgoing webhooks](sync.md#webhooks-to-your-programs) may use plain http, and private and loopback addresses: `on` or `off`.',
    parse: parseSwitch,
  },
  LOG_LEVEL: {
    default: 'info',
    flag: '--log-level <level>',
    commands: ['serve', 'up', 'sync'],
    meaning:
      'Lowest level of the lines in the log: `debug`, `info` (with a line for each request), `warn`, `error` or `silent`.',
    parse: parseMatch(/^(debug|info|warn|error|silent)$/, 'must be one of debug, info, warn, error, silent'),
  },
  SHUTDOWN_DELAY: {
    default: '5s',
    flag: '--shutdown-delay <seconds>',
    meaning:
      'Time for which the service continues after SIGTERM while `/ready` answers 503, from `0s` to `600s`. Ctrl-C stops it without this delay. See [stopping](run.md#stopping).',
    parse: parseDelayMs,
  },
  REUSE_PORT: {
    default: 'off',
    flag: '--reuse-port <on|off>',
    commands: ['serve'],
    meaning:
      'Whether [several processes](run.md#several-processes) of one user may listen on the same address and port: `on` or `off`.',
    parse: parseSwitch,
  },
} as const satisfies Record<string, SettingDefinition>

export type Setting = keyof typeof settings

export type Settings = { [K in Setting]: ReturnType<(typeof settings)[K]['parse']> }

export const settingNames = Object.keys(settings) as Setting[]

/** Name of the variable that holds the path of a file with the value. Null for a setting that is not secret. */
export function fileVariable(name: Setting): string | null {
  const { isSecret }: SettingDefinition = settings[name]
  return isSecret === true ? `${name}_FILE` : null
}

/** Names of all variables that Fatura reads, including variables with the path of a secret's file. */
export const variableNames = settingNames.flatMap(name => [name, fileVariable(name) ?? []].flat())

type ServiceOf<Definition> = Definition extends { commands: readonly (infer Named)[] }
  ? Named
  : 'serve' | 'up'

export type SettingOf<Command extends Service> = {
  [K in Setting]: Command extends ServiceOf<(typeof settings)[K]> ? K : never
}[Setting]

export function settingsOf<Command extends Service>(command: Command): SettingOf<Command>[] {
  const isTaken = (name: Setting) => {
    const { commands = ['serve', 'up'] }: SettingDefinition = settings[name]
    return commands.includes(command)
  }
  return settingNames.filter(isTaken) as SettingOf<Command>[]
}
