/** The only reader of the environment. A wrong value stops the start with one line that says what is allowed. */
import type { RateLimit } from '../http/rate-limit.ts'
import type { StripeOptions } from '../stripe/client.ts'
import { CliError } from './cli-error.ts'

/** Every setting: a variable of the environment, and a flag on the commands where people type it. */
export const settings = {
  DATABASE_URL: {
    default: 'sqlite:data/fatura.db',
    meaning:
      'Where the store is: `sqlite:` and the path of a file, or `postgres://user:password@host:5432/name`.',
  },
  DATABASE_READ_URL: {
    default: 'as DATABASE_URL',
    meaning: 'Where the API reads, when that is not where others write: a replica of the same store.',
  },
  HOST: { default: '127.0.0.1', meaning: 'The address to listen on; `0.0.0.0` or `::` for every interface.' },
  PORT: { default: '3000', meaning: 'The port to listen on; 0 takes a free one.' },
  STRIPE_API_KEY: {
    default: 'none',
    meaning:
      'A Stripe key that may read invoices: lines that are not stored, and PDFs, then come from Stripe.',
  },
  STRIPE_WEBHOOK_SECRET: {
    default: 'none',
    meaning: 'What Stripe signs its webhooks with; begins with `whsec_`. Needed to receive them.',
  },
  STRIPE_API_BASE: {
    default: 'https://api.stripe.com',
    meaning: 'Where the Stripe API is; another address is taken for a sandbox.',
  },
  RATE_LIMIT: {
    default: '6000/m',
    meaning: 'Requests per token and process: a number, `/` and `s`, `m` or `h`; or `off`.',
  },
  LOG_LEVEL: {
    default: 'info',
    meaning: 'What is logged: `debug`, `info` (a line per request), `warn`, `error` or `silent`.',
  },
} as const

export type Setting = keyof typeof settings
export type Flags = Partial<Record<Setting, string>>

/** A flag's value wins over the environment's; an empty value counts as not set. */
function read(setting: Setting, flags: Flags): string {
  return flags[setting] || process.env[setting] || settings[setting].default
}

/** Whether somebody chose a value, by flag or environment. */
export function isSet(setting: Setting, flags: Flags): boolean {
  return Boolean(flags[setting] || process.env[setting])
}

export function readDatabaseUrl(flags: Flags): string {
  return read('DATABASE_URL', flags)
}

/** Where the API reads. */
export function readReadUrl(flags: Flags): string {
  return isSet('DATABASE_READ_URL', flags) ? read('DATABASE_READ_URL', flags) : readDatabaseUrl(flags)
}

export function readHost(flags: Flags): string {
  return read('HOST', flags)
}

export function readPort(flags: Flags): number {
  const text = read('PORT', flags)
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new CliError(`PORT must be a whole number from 0 to 65535, not '${text}'.`)
  return port
}

/** Null when no key is set. A key is a secret: it has no flag, which other users of the machine could read. */
export function readStripe(): StripeOptions | null {
  const apiKey = process.env.STRIPE_API_KEY
  if (!apiKey) return null
  if (!/^[sr]k_\w+$/.test(apiKey))
    throw new CliError('STRIPE_API_KEY must be a key that begins with sk_ or rk_.')
  const base = read('STRIPE_API_BASE', {})
  const url = URL.parse(base)
  // Not shown: what is there by mistake may be a key.
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new CliError('STRIPE_API_BASE must be an address like https://api.stripe.com, without a path.')
  if (url.protocol === 'http:' && url.hostname.endsWith('.stripe.com'))
    throw new CliError('STRIPE_API_BASE must begin with https: a key must not travel in the clear.')
  return { apiKey, base }
}

export function readWebhookSecret(): string {
  const secret = process.env.STRIPE_WEBHOOK_SECRET
  if (!secret?.startsWith('whsec_'))
    throw new CliError(
      'STRIPE_WEBHOOK_SECRET must be set to the secret that Stripe shows, which begins with whsec_.',
    )
  return secret
}

const windows: Record<string, number> = { s: 1, m: 60, h: 3_600 }

export function readRateLimit(flags: Flags): RateLimit | null {
  const text = read('RATE_LIMIT', flags)
  if (text === 'off') return null
  const [, requests, unit = ''] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  const seconds = windows[unit]
  if (requests === undefined || seconds === undefined)
    throw new CliError(`RATE_LIMIT must be like 100/s, 6000/m or 50000/h, or off, not '${text}'.`)
  return { requests: Number(requests), seconds }
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent']

export function readLogLevel(flags: Flags): string {
  const text = read('LOG_LEVEL', flags)
  if (!logLevels.includes(text))
    throw new CliError(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not '${text}'.`)
  return text
}
