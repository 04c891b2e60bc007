/** From the text of a setting to its value. */
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import { dayIn, isCalendarDay } from '../../calendar.ts'
import { type LinkKey, readLinkKey } from '../../customer-link/create-link.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import type { Logo } from '../../http/web-files.ts'
import { type MetadataKeys, usualKeys } from '../../stripe/map-claim.ts'

/** The message is what is allowed, and follows the setting's name. */
export class InvalidSetting extends Error {}

/** `problem` is as in "must be on or off". The reader of the setting adds its name and, unless it is secret, its value. */
export function refuse(problem: string): never {
  throw new InvalidSetting(problem)
}

/** Null for the word that stands for no value. */
export function unless<T>(word: string, parse: (text: string) => T): (text: string) => T | null {
  return text => (text === word ? null : parse(text))
}

export function parseMatch(pattern: RegExp, problem: string): (text: string) => string {
  return text => (pattern.test(text) ? text : refuse(problem))
}

export function parseOneOf<const T extends string>(words: readonly T[]): (text: string) => T {
  return text => words.find(word => word === text) ?? refuse(`must be one of ${words.join(', ')}`)
}

export function parseSwitch(text: string): boolean {
  return text === 'on' || (text !== 'off' && refuse('must be on or off'))
}

export function parseTimeZone(text: string): string {
  try {
    dayIn(text)
    return text
  } catch {
    return refuse('must be the name of a time zone, such as Europe/Lisbon or UTC')
  }
}

const imageTypes: Record<string, string> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}
const largestLogoBytes = 256 * 1024

export function parseLogo(path: string): Logo {
  const type = imageTypes[extname(path).toLowerCase()] ?? refuse('must be a file .svg, .png, .jpg or .webp')
  let content: Buffer
  try {
    content = readFileSync(path)
  } catch {
    return refuse('must be the path of a file that this user may read')
  }
  return content.length <= largestLogoBytes ? { type, content } : refuse('must be a file of at most 256 KB')
}

/** The light ground of the page, which is darker than its cards. */
const ground = '#f4f6f4'
const leastContrast = 4.5

/** WCAG 2.2, 1.4.3. */
export function parseAccent(text: string): string {
  if (!/^#[\da-f]{6}$/i.test(text)) return refuse('must be a colour like #0a6650')
  const contrast = (luminanceOf(ground) + 0.05) / (luminanceOf(text) + 0.05)
  if (contrast >= leastContrast) return text
  return refuse(
    `must be a darker colour: its contrast with the background is ${contrast.toFixed(1)}, and at least ${leastContrast} is readable`,
  )
}

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(start => {
    const share = Number.parseInt(colour.slice(start, start + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

export function parseList(isItem: (text: string) => boolean, problem: string): (text: string) => string[] {
  return text => {
    const items = text.split(',').map(item => item.trim())
    return items.every(isItem) ? items : refuse(problem)
  }
}

/** Undefined when the text is not a whole number from `low` to `high`. */
export function readWhole(text: string, low: number, high: number): number | undefined {
  const value = Number(text)
  return /^\d{1,10}$/.test(text) && value >= low && value <= high ? value : undefined
}

export function parsePort(text: string): number {
  return readWhole(text, 0, 65_535) ?? refuse('must be a whole number from 0 to 65535')
}

export function parseDays(text: string): number {
  return readWhole(text, 1, 3_650) ?? refuse('must be a whole number from 1 to 3650')
}

export function parseWorkers(text: string): number {
  if (text === 'auto') return availableParallelism()
  return readWhole(text, 1, 256) ?? refuse('must be a whole number from 1 to 256, or auto')
}

const unitsMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function parseDurationMs(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  return Number(count) * (unitsMs[unit] ?? refuse('must be like 90s, 30m, 1h or 2d'))
}

/** A number of seconds and `s`, in milliseconds. */
export function parseSecondsMs(mostSeconds: number): (text: string) => number {
  return text => {
    const seconds = text.endsWith('s') ? readWhole(text.slice(0, -1), 0, mostSeconds) : undefined
    return (
      1_000 * (seconds ?? refuse(`must be a number of seconds and s, from 0s to ${mostSeconds}s, like 5s`))
    )
  }
}

const windowSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600 }

export function parseRateLimit(text: string): RateLimit {
  const [, requests, unit = ''] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  const seconds = windowSeconds[unit] ?? refuse('must be like 100/s, 6000/m or 50000/h, or off')
  return { requests: Number(requests), seconds }
}

export function parseDay(text: string): string {
  return isCalendarDay(text) ? text : refuse('must be a calendar day, written YYYY-MM-DD, or none')
}

export function parseReference(text: string): string {
  const isRight = text.split('{id}').length === 2 && !/\p{Cc}/u.test(text)
  return isRight ? text : refuse('must contain {id} once, like {id} or Stripe {id}')
}

/** The address of an API, in which `{account}` may stand for the name of an account. */
export function parseApiBase(example: string, domain: string): (text: string) => string {
  return text => {
    const url = URL.parse(text.replace('{account}', 'name'))
    if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
      return refuse(`must be an address like ${example}, without a path`)
    if (url.protocol === 'http:' && url.hostname.endsWith(`.${domain}`))
      return refuse('must begin with https, so that nobody on the way can read the key')
    return text
  }
}

/** An address without a `/` at its end. */
export function parseSecureUrl(example: string): (text: string) => string {
  return text => {
    const { href } = readSecureUrl(text, example)
    return /[?#]/.test(text)
      ? refuse(`must be an address like ${example}, without a query`)
      : href.replace(/\/+$/, '')
  }
}

export function parseKeySetUrl(text: string): string {
  return readSecureUrl(text, 'https://login.example.com/jwks.json').href
}

/** The name or value of a claim. */
export const parseClaimText = parseMatch(/^[^\p{Cc}]{1,500}$/u, 'must be one line of at most 500 characters')

/** Plain http is for this machine alone: nobody on the way may read or change what is sent. */
function readSecureUrl(text: string, example: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.password !== '')
    return refuse(`must be an address like ${example}`)
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return refuse(
      'must begin with https; http is allowed for this machine alone, as in http://127.0.0.1:3000',
    )
  return url
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

export function parseLinkKey(text: string): LinkKey {
  try {
    return readLinkKey(text)
  } catch {
    return refuse('must be the private key that "fatura key add" printed: JSON with kty, crv, kid, x and d')
  }
}

export function parseNetworks(text: string): BlockList {
  const networks = new BlockList()
  const add = (item: string) => {
    const [address = '', length = null, ...rest] = item.split('/')
    const version = isIP(address)
    const most = version === 4 ? 32 : 128
    const bits = length === null ? most : readWhole(length, 0, most)
    if (version === 0 || bits === undefined || rest.length > 0) return false
    networks.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6')
    return true
  }
  parseList(
    add,
    'must be addresses or networks like 127.0.0.1 or 10.0.0.0/8, separated by commas, or none',
  )(text)
  return networks
}

/** Each as a browser writes it, for they are compared as texts. */
export function parseOrigins(text: string): string[] {
  const isExact = (item: string) => {
    const url = URL.parse(item)
    return url !== null && /^https?:$/.test(url.protocol) && url.origin === item
  }
  const problem =
    'must be origins as browsers send them, like https://app.example.com, separated by commas: lower case, without a path, a usual port or *'
  return [...new Set(parseList(isExact, problem)(text))]
}

/** The keys of the metadata at Stripe: the usual ones, except those that the text names. */
export function parseMetadataKeys(text: string): MetadataKeys {
  if (text === 'none') return usualKeys
  const pairs = text.split(',').map(pair => pair.split('=').map(part => part.trim()))
  const keys: MetadataKeys = { ...usualKeys, ...Object.fromEntries(pairs) }
  const isRight =
    pairs.every(pair => pair.length === 2 && Object.hasOwn(usualKeys, pair[0] ?? '')) &&
    new Set(pairs.map(([fact]) => fact)).size === pairs.length &&
    // Stripe's own limit for a key of metadata.
    Object.values(keys).every(key => /^[^[\]]{1,40}$/.test(key)) &&
    new Set(Object.values(keys)).size === Object.keys(usualKeys).length
  return isRight
    ? keys
    : refuse(
        `must be pairs like state=doc_state,ix_id=doc_id, or none; each pair names a different one of ${Object.keys(usualKeys).join(', ')}, and gives it a key that no other has`,
      )
}
