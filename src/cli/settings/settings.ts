/**
 * Every setting, once. From this table follow the flags and `--help`, the rows of docs/configuration.md (`npm run settings`),
 * what `fatura doctor` checks, and the type of each value: what its `parse` returns.
 */
import { isOrigin } from '../../pdf/allowed-origins.ts'
import { findAddressProblem, splitAddresses } from '../../store/engines.ts'
import { accessSettings } from './access-settings.ts'
import {
  parseApiBase,
  parseClaimText,
  parseDay,
  parseDurationMs,
  parseKeySetUrl,
  parseList,
  parseMatch,
  parseMetadataKeys,
  parseOneOf,
  parseOrigins,
  parsePort,
  parseRateLimit,
  parseReference,
  parseSecondsMs,
  parseSecureUrl,
  parseWorkers,
  refuse,
  unless,
} from './parsers.ts'

export interface SettingDefinition {
  /** A text that `parse` takes, as any other value. */
  default: string
  /** Null: environment only. A secret has no flag, because other users of the machine can read a command line. */
  flag: string | null
  /** What the docs say, in Markdown; `--help` says the same as plain text. */
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

/** Of one store, or of several servers that serve the same one. */
function parseAddresses(text: string): string {
  const addresses = splitAddresses(text).map(parseAddress)
  if (addresses.length > 1 && addresses[0]?.startsWith('sqlite:'))
    return refuse('must be one address, or several of PostgreSQL with commas between them')
  return addresses.join(',')
}

const usualReadUrl = 'as DATABASE_URL'
const usualPdfOrigins = 'https://*.invoicexpress.com'

export const settings = {
  DATABASE_URL: {
    default: 'sqlite:data/fatura.db',
    flag: '--database-url <url>',
    meaning:
      'Where the store is: `sqlite:` and the path of a file, relative to the working directory or absolute (`sqlite:/var/lib/fatura/fatura.db`); or `postgres://user:password@host:5432/name`.',
    isSecret: true,
    parse: parseAddress,
  },
  DATABASE_READ_URL: {
    default: usualReadUrl,
    flag: '--database-read-url <url>',
    meaning:
      'Where the API reads, if not from `DATABASE_URL`: [a replica of the same store](postgresql.md#reading-from-a-replica). Several addresses of servers, with commas between them, are read from in turn: [nodes of Citus](citus.md), or replicas.',
    isSecret: true,
    parse: unless(usualReadUrl, parseAddresses),
  },
  HOST: {
    default: '127.0.0.1',
    flag: '--host <address>',
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
    flag: null,
    meaning:
      'Where the [identity provider](access.md#jwts-of-an-identity-provider) publishes its keys (JWKS). `AUTH_JWKS_URL`, `AUTH_ISSUER` and `AUTH_AUDIENCE` are set together.',
    isSecret: true,
    parse: unless('none', parseKeySetUrl),
  },
  AUTH_ISSUER: {
    default: 'none',
    flag: null,
    meaning: 'The claim `iss` of its tokens, exactly.',
    parse: unless('none', parseClaimText),
  },
  AUTH_AUDIENCE: {
    default: 'none',
    flag: null,
    meaning: 'What the claim `aud` of its tokens must be or contain, exactly.',
    parse: unless('none', parseClaimText),
  },
  AUTH_CUSTOMER_CLAIM: {
    default: 'customer_id',
    flag: null,
    meaning: 'The claim that names the customers whom a token may read: an ID, or a list of IDs.',
    parse: parseClaimText,
  },
  AUTH_SCOPE: {
    default: 'none',
    flag: null,
    meaning: 'A scope that every token of the provider must have, in its claim `scope` or `scp`.',
    parse: unless('none', parseMatch(/^[!#-[\]-~]{1,200}$/, 'must be one scope, without spaces or quotes')),
  },
  AUTH_TYP: {
    default: 'none',
    flag: null,
    meaning:
      'The header `typ` that every token of the provider must have, such as `at+jwt`. Without it, `JWT`, `at+jwt` and none are accepted.',
    parse: unless('none', parseMatch(/^[\w!#$&^.+/-]{1,100}$/, 'must be a type, such as at+jwt')),
  },
  ...accessSettings,
  STRIPE_API_KEY: {
    default: 'none',
    flag: null,
    meaning:
      'A Stripe key, `rk_…` or `sk_…`. `sync` and `up` read the invoices of its account; `serve` and `up` fetch PDFs, and lines that are not stored. A [restricted key](sync.md#set-it-up) is enough.',
    isSecret: true,
    parse: unless('none', parseMatch(/^[sr]k_\w+$/, 'must be a key that begins with sk_ or rk_')),
  },
  STRIPE_WEBHOOK_SECRET: {
    default: 'none',
    flag: null,
    meaning: 'The secret that Stripe signs its webhooks with, `whsec_…`. Required with `--webhooks`.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(/^whsec_/, 'must be the secret that Stripe shows, which begins with whsec_'),
    ),
  },
  STRIPE_API_BASE: {
    default: 'https://api.stripe.com',
    flag: null,
    meaning:
      'Where the Stripe API is: scheme, host and port, without a path. The key is sent there. Any host that is not a host of Stripe counts as a [sandbox](sandbox.md): requests are not limited to the rate that Stripe allows, and PDFs may come from a private address.',
    isSecret: true,
    parse: parseApiBase('https://api.stripe.com', 'stripe.com'),
  },
  INVOICEXPRESS_ACCOUNT: {
    default: 'none',
    flag: null,
    meaning:
      'The name of the InvoiceXpress account: the part before `.app.invoicexpress.com` in its address. Required with `INVOICEXPRESS_API_KEY`, unless `INVOICEXPRESS_API_BASE` is set.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(
        /^[a-z0-9-]+$/,
        'must be the name alone, the part before .app.invoicexpress.com: lower-case letters, digits and hyphens',
      ),
    ),
  },
  INVOICEXPRESS_API_KEY: {
    default: 'none',
    flag: null,
    meaning:
      'The key of the InvoiceXpress account. `sync` and `up` read the certified documents with it; `serve` and `up` fetch their PDFs.',
    isSecret: true,
    parse: unless(
      'none',
      parseMatch(
        /^[\w-]+$/,
        'must be a key as InvoiceXpress shows it: letters, digits, hyphens and underscores',
      ),
    ),
  },
  INVOICEXPRESS_API_BASE: {
    default: 'https://{account}.app.invoicexpress.com',
    flag: null,
    meaning:
      'Where the InvoiceXpress API is: scheme, host and port, without a path. The key is sent there. Any host that is not a host of InvoiceXpress counts as a sandbox: requests are not limited to the rate that InvoiceXpress allows, and PDFs come from that host, even from a private address.',
    isSecret: true,
    parse: parseApiBase('https://{account}.app.invoicexpress.com', 'invoicexpress.com'),
  },
  INVOICEXPRESS_PDF_ORIGINS: {
    default: usualPdfOrigins,
    flag: null,
    meaning:
      'Where PDFs of certified documents may come from: origins (scheme, host and port), separated by commas; `*.` at the start of a host means its subdomains.',
    isSecret: true,
    parse: unless(
      usualPdfOrigins,
      parseList(isOrigin, `must be origins like ${usualPdfOrigins}, separated by commas`),
    ),
  },
  LINK_REFERENCE: {
    default: '{id}',
    flag: null,
    meaning:
      'The reference that a document of an invoice carries: a text that contains `{id}` once, in place of the ID of the invoice.',
    parse: parseReference,
  },
  LINK_METADATA_KEYS: {
    default: 'none',
    flag: null,
    meaning:
      'Metadata keys at Stripe that differ from the [usual keys](linking.md#the-convention): pairs like `state=doc_state,ix_id=doc_id`.',
    parse: parseMetadataKeys,
  },
  LINK_IGNORE_ZERO: {
    default: 'off',
    flag: null,
    meaning: 'Whether invoices with a total of zero need no document: `on` or `off`.',
    parse: text => parseOneOf(['on', 'off'], 'must be on or off')(text) === 'on',
  },
  LINK_IGNORE_BEFORE: {
    default: 'none',
    flag: null,
    meaning: 'Invoices issued before this day, YYYY-MM-DD in UTC, need no document.',
    parse: unless('none', parseDay),
  },
  LINK_CREATING_TIMEOUT: {
    default: '1h',
    flag: null,
    meaning:
      'How long a document may stay `creating` before it counts as [failed](linking.md#how-the-state-is-found): a number and `s`, `m`, `h` or `d`.',
    parse: parseDurationMs,
  },
  RATE_LIMIT: {
    default: '6000/m',
    flag: '--rate-limit <limit>',
    meaning:
      'How many requests each token may send to one process: a number, `/`, and `s`, `m` or `h`; or `off`.',
    parse: unless('off', parseRateLimit),
  },
  WEB: {
    default: 'on',
    flag: '--web <on|off>',
    meaning:
      'Whether pages are served beside the API: the [billing page](page.md) and the [API reference](api.md#the-reference-in-a-browser). `on` or `off`.',
    parse: text => parseOneOf(['on', 'off'], 'must be on or off')(text) === 'on',
  },
  EMBED_ORIGINS: {
    default: 'none',
    flag: '--embed-origins <origins>',
    meaning:
      'The origins (scheme, host and port) whose pages may show the [billing page](page.md#in-a-frame) in a frame, separated by commas, like `https://app.example.com`.',
    parse: unless('none', parseOrigins),
  },
  LOG_LEVEL: {
    default: 'info',
    flag: '--log-level <level>',
    meaning: 'What is logged: `debug`, `info` (a line for each request), `warn`, `error` or `silent`.',
    parse: parseOneOf(['debug', 'info', 'warn', 'error', 'silent']),
  },
  SHUTDOWN_DELAY: {
    default: '5s',
    flag: '--shutdown-delay <seconds>',
    meaning:
      'How long to continue serving after SIGTERM, while `/ready` answers 503: a number of seconds and `s`, `0s` to `600s`. Ctrl-C does not wait. See [stopping](run.md#stopping).',
    parse: parseSecondsMs(600),
  },
  WORKERS: {
    default: '1',
    flag: '--workers <count>',
    meaning:
      'How many processes serve the address, 1 to 256; `auto` is one for each core. See [several processes](run.md#several-processes).',
    parse: parseWorkers,
  },
} as const satisfies Record<string, SettingDefinition>

export type Setting = keyof typeof settings

/** What each setting is once it is parsed. */
export type Settings = { [K in Setting]: ReturnType<(typeof settings)[K]['parse']> }

export const settingNames = Object.keys(settings) as Setting[]
