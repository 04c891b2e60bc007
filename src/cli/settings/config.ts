/** The only reader of the environment. A wrong value stops the start with one line that says what is allowed. */
import { availableParallelism } from 'node:os'
import { isCalendarDay } from '../../calendar.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import type { InvoiceXpressOptions } from '../../invoicexpress/client.ts'
import type { LinkRules } from '../../linking/link.ts'
import { isOrigin } from '../../pdf/allowed-origins.ts'
import { checkAddress } from '../../store/engines.ts'
import type { StripeOptions } from '../../stripe/client.ts'
import type { MetadataKeys } from '../../stripe/map-claim.ts'
import { CliError } from '../terminal/cli-error.ts'
import {
  parseCreatingTimeout,
  parseMetadataKeys,
  parseRateLimit,
  parseShutdownDelay,
} from './parse-settings.ts'
import { type Setting, settings } from './settings.ts'

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
  const apiKey = readStripeKey()
  return apiKey === null ? null : { apiKey, base: readStripeBase() }
}

function readStripeKey(): string | null {
  const apiKey = process.env.STRIPE_API_KEY
  if (!apiKey) return null
  if (!/^[sr]k_\w+$/.test(apiKey))
    throw new CliError('STRIPE_API_KEY must be a key that begins with sk_ or rk_.')
  return apiKey
}

function readStripeBase(): string {
  return readBase('STRIPE_API_BASE', read('STRIPE_API_BASE', {}), 'stripe.com')
}

/** Null when no key is set. */
export function readInvoiceXpress(): InvoiceXpressOptions | null {
  const apiKey = readInvoiceXpressKey()
  if (apiKey === null) return null
  const account = readAccount()
  if (account === null && !isSet('INVOICEXPRESS_API_BASE', {}))
    throw new CliError('INVOICEXPRESS_ACCOUNT must be set with INVOICEXPRESS_API_KEY: it is whose key it is.')
  const base = readInvoiceXpressBase(account)
  const pdfOrigins = readPdfOrigins()
  return { account, apiKey, base, ...(pdfOrigins !== null && { pdfOrigins }) }
}

function readInvoiceXpressKey(): string | null {
  const apiKey = process.env.INVOICEXPRESS_API_KEY
  if (!apiKey) return null
  if (!/^[\w-]+$/.test(apiKey))
    throw new CliError(
      'INVOICEXPRESS_API_KEY must be a key as InvoiceXpress shows it, of letters and digits.',
    )
  return apiKey
}

function readAccount(): string | null {
  const account = process.env.INVOICEXPRESS_ACCOUNT || null
  if (account !== null && !/^[a-z0-9-]+$/.test(account))
    throw new CliError(
      'INVOICEXPRESS_ACCOUNT must be the name alone, of small letters, digits and hyphens, as before .app.invoicexpress.com.',
    )
  return account
}

function readInvoiceXpressBase(account: string | null): string {
  const address = read('INVOICEXPRESS_API_BASE', {}).replace('{account}', account ?? '')
  return readBase('INVOICEXPRESS_API_BASE', address, 'invoicexpress.com')
}

/** Null when none are set. */
function readPdfOrigins(): string[] | null {
  if (!isSet('INVOICEXPRESS_PDF_ORIGINS', {})) return null
  const pdfOrigins = read('INVOICEXPRESS_PDF_ORIGINS', {})
    .split(',')
    .map(origin => origin.trim())
  if (!pdfOrigins.every(isOrigin))
    throw new CliError(
      'INVOICEXPRESS_PDF_ORIGINS must be origins like https://*.invoicexpress.com, separated by commas.',
    )
  return pdfOrigins
}

/** Where an API is. Not shown when it is wrong: what is there by mistake may be a key. */
function readBase(setting: Setting, address: string, domain: string): string {
  const url = URL.parse(address)
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new CliError(`${setting} must be an address like ${settings[setting].default}, without a path.`)
  if (url.protocol === 'http:' && url.hostname.endsWith(`.${domain}`))
    throw new CliError(`${setting} must begin with https: a key must not travel in the clear.`)
  return address
}

export function readWebhookSecret(): string {
  const secret = process.env.STRIPE_WEBHOOK_SECRET
  if (!secret?.startsWith('whsec_'))
    throw new CliError(
      'STRIPE_WEBHOOK_SECRET must be set to the secret that Stripe shows, which begins with whsec_.',
    )
  return secret
}

/** The convention with whoever creates documents. `isConnected`: whether an invoicing system is. */
export function readLinkRules(isConnected: boolean): LinkRules {
  return {
    reference: readReference(),
    ignoreZero: readIgnoreZero(),
    ignoreBefore: readIgnoreBefore(),
    creatingAtMost: readCreatingTimeout(),
    isConnected,
  }
}

function readReference(): string {
  const reference = read('LINK_REFERENCE', {})
  if (reference.split('{id}').length !== 2 || /\p{Cc}/u.test(reference))
    throw new CliError(`LINK_REFERENCE must hold {id} once, like {id} or Stripe {id}, not '${reference}'.`)
  return reference
}

function readIgnoreZero(): boolean {
  const zero = read('LINK_IGNORE_ZERO', {})
  if (zero !== 'on' && zero !== 'off')
    throw new CliError(`LINK_IGNORE_ZERO must be on or off, not '${zero}'.`)
  return zero === 'on'
}

function readIgnoreBefore(): string | null {
  const before = read('LINK_IGNORE_BEFORE', {})
  if (before !== 'none' && !isCalendarDay(before))
    throw new CliError(
      `LINK_IGNORE_BEFORE must be a calendar day, written YYYY-MM-DD, or none, not '${before}'.`,
    )
  return before === 'none' ? null : before
}

function readCreatingTimeout(): number {
  return parseCreatingTimeout(read('LINK_CREATING_TIMEOUT', {}))
}

export function readMetadataKeys(): MetadataKeys {
  return parseMetadataKeys(read('LINK_METADATA_KEYS', {}))
}

export function readRateLimit(flags: Flags): RateLimit | null {
  return parseRateLimit(read('RATE_LIMIT', flags))
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent']

export function readLogLevel(flags: Flags): string {
  const text = read('LOG_LEVEL', flags)
  if (!logLevels.includes(text))
    throw new CliError(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not '${text}'.`)
  return text
}

/** In milliseconds. */
export function readShutdownDelay(flags: Flags): number {
  return parseShutdownDelay(read('SHUTDOWN_DELAY', flags))
}

export function readWorkers(flags: Flags): number {
  const text = read('WORKERS', flags)
  if (text === 'auto') return availableParallelism()
  const workers = Number(text)
  if (!/^\d+$/.test(text) || workers < 1 || workers > 256)
    throw new CliError(`WORKERS must be a whole number from 1 to 256, or auto, not '${text}'.`)
  return workers
}

/** Every reader of its own, for whoever wants to know of all that is wrong at once. */
const readers: Record<Setting, (flags: Flags) => unknown> = {
  DATABASE_URL: flags => checkAddress(readDatabaseUrl(flags)),
  DATABASE_READ_URL: flags => checkAddress(readReadUrl(flags)),
  HOST: readHost,
  PORT: readPort,
  STRIPE_API_KEY: readStripeKey,
  STRIPE_WEBHOOK_SECRET: readWebhookSecret,
  STRIPE_API_BASE: readStripeBase,
  INVOICEXPRESS_ACCOUNT: readAccount,
  INVOICEXPRESS_API_KEY: readInvoiceXpressKey,
  INVOICEXPRESS_API_BASE: () => readInvoiceXpressBase(process.env.INVOICEXPRESS_ACCOUNT || 'name'),
  INVOICEXPRESS_PDF_ORIGINS: readPdfOrigins,
  LINK_REFERENCE: readReference,
  LINK_METADATA_KEYS: readMetadataKeys,
  LINK_IGNORE_ZERO: readIgnoreZero,
  LINK_IGNORE_BEFORE: readIgnoreBefore,
  LINK_CREATING_TIMEOUT: readCreatingTimeout,
  RATE_LIMIT: readRateLimit,
  LOG_LEVEL: readLogLevel,
  SHUTDOWN_DELAY: readShutdownDelay,
  WORKERS: readWorkers,
}

/** Each setting that somebody chose, and what a start would say of it; null when it is well-formed. */
export function checkSettings(flags: Flags): { setting: Setting; problem: string | null }[] {
  const chosen = (Object.keys(readers) as Setting[]).filter(setting => isSet(setting, flags))
  return chosen.map(setting => {
    try {
      readers[setting](flags)
      return { setting, problem: null }
    } catch (error) {
      return { setting, problem: (error as Error).message }
    }
  })
}
