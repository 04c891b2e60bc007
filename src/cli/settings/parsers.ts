/** Parsers of settings. A parser turns the text of a setting into its value. */
import type { RateLimit } from '../../http/rate-limit.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

/** Thrown for a wrong value. The message follows the setting's name, for example "must be on or off". */
export class InvalidSetting extends Error {}

/**
 * Throws an `InvalidSetting`. `problem` says what is allowed, for example "must be on or off". `readSettings` adds the setting's name, and
 * the value unless the value is secret.
 */
export function refuse(problem: string): never {
  throw new InvalidSetting(problem)
}

/** The parser returns null for `word`, the text that means "no value". */
export function unless<T>(word: string, parse: (text: string) => T): (text: string) => T | null {
  return text => (text === word ? null : parse(text))
}

/** Makes a setting without a default. Its value is null when the text is `none`. */
export function optional<const Setting extends { parse(text: string): unknown }>(setting: Setting) {
  const parse = setting.parse as (text: string) => ReturnType<Setting['parse']>
  return { ...(setting as Omit<Setting, 'parse'>), default: 'none', parse: unless('none', parse) }
}

export function parseMatch(pattern: RegExp, problem: string): (text: string) => string {
  return text => (pattern.test(text) ? text : refuse(problem))
}

export function parseSwitch(text: string): boolean {
  return text === 'on' || (text !== 'off' && refuse('must be on or off'))
}

export function parseList(isItem: (text: string) => boolean, problem: string) {
  return (text: string): readonly string[] => {
    const items = text.split(',').map(item => item.trim())
    return items.every(isItem) ? items : refuse(problem)
  }
}

/** Undefined when the text is not a whole number from `low` to `high`. */
export function readWhole(text: string, low: number, high: number): number | undefined {
  const value = Number(text)
  return /^\d{1,10}$/.test(text) && value >= low && value <= high ? value : undefined
}

/** Returns the value of a flag. `name` is for the message, for example "--port". */
export function readWholeFlag(name: string, text: string, low: number, high: number): number {
  const value = readWhole(text, low, high)
  if (value !== undefined) return value
  throw new CliError(`${name} must be a whole number from ${low} to ${high}, not '${printable(text)}'.`)
}

export function parseWhole(low: number, high: number): (text: string) => number {
  return text => readWhole(text, low, high) ?? refuse(`must be a whole number from ${low} to ${high}`)
}

export const parsePort = parseWhole(0, 65_535)

const unitsMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function parseDurationMs(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  return (
    Number(count) *
    (unitsMs[unit] ?? refuse('must be a number and s, m, h or d, for example 90s, 30m, 1h or 2d'))
  )
}

/** Returns milliseconds. The text is from `0s` to `600s`. */
export function parseDelayMs(text: string): number {
  const seconds = text.endsWith('s') ? readWhole(text.slice(0, -1), 0, 600) : undefined
  return 1_000 * (seconds ?? refuse('must be a number of seconds with s, from 0s to 600s, for example 5s'))
}

export function parseRateLimit(text: string): RateLimit {
  const [, requests, unit = ''] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  const windowMs =
    unitsMs[unit] ??
    refuse('must be off, or a number of requests per time, for example 100/s, 6000/m or 50000/h')
  return { requests: Number(requests), seconds: windowMs / 1_000 }
}

/** Returns an address without a path and without a `/` at the end. The API and the page are served at the root of their host. */
export function parsePublicUrl(text: string): string {
  const example = 'https://billing.example.com'
  const { href, origin } = readSecureUrl(text, example)
  if (/[?#]/.test(text)) return refuse(`must be an address such as ${example}, without a query`)
  const address = href.replace(/\/+$/, '')
  return address === origin
    ? address
    : refuse(
        `must be an address such as ${example}, without a path, because the service needs its own host name`,
      )
}

export function parseKeySetUrl(text: string): string {
  return readSecureUrl(text, 'https://login.example.com/jwks.json').href
}

export const parseClaimText = parseMatch(/^[^\p{Cc}]{1,500}$/u, 'must be one line of at most 500 characters')

/** Allows http only for a loopback address. On a network, others could read or change what is sent. */
function readSecureUrl(text: string, example: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.password !== '')
    return refuse(`must be an address such as ${example}`)
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return refuse(
      'must begin with https (http is allowed only for this machine, for example http://127.0.0.1:3000)',
    )
  return url
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** Accepts only origins as browsers write them, because a request's origin is compared as text. */
export function parseOrigins(text: string): string[] {
  const isExact = (item: string) => {
    const url = URL.parse(item)
    return url !== null && /^https?:$/.test(url.protocol) && url.origin === item
  }
  const problem =
    'must be origins such as https://app.example.com, separated by commas, in lower case, without a path, a default port or *'
  return [...new Set(parseList(isExact, problem)(text))]
}
