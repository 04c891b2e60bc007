/** From the texts of settings that are more than a word to their values. */
import type { RateLimit } from '../../http/rate-limit.ts'
import { type MetadataKeys, usualKeys } from '../../stripe/map-claim.ts'
import { CliError } from '../terminal/cli-error.ts'

const durations: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In milliseconds. */
export function parseCreatingTimeout(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  const duration = durations[unit]
  if (count === undefined || duration === undefined)
    throw new CliError(`LINK_CREATING_TIMEOUT must be like 90s, 30m, 1h or 2d, not '${text}'.`)
  return Number(count) * duration
}

/** The keys of Stripe's metadata: the usual ones, but for those that are named. */
export function parseMetadataKeys(text: string): MetadataKeys {
  if (text === 'none') return usualKeys
  const pairs = text.split(',').map(pair => pair.split('=').map(part => part.trim()))
  const keys: MetadataKeys = { ...usualKeys, ...Object.fromEntries(pairs) }
  const isRight =
    pairs.every(pair => pair.length === 2 && Object.hasOwn(usualKeys, pair[0] ?? '')) &&
    new Set(pairs.map(([fact]) => fact)).size === pairs.length &&
    // What Stripe takes for a key of metadata.
    Object.values(keys).every(key => /^[^[\]]{1,40}$/.test(key)) &&
    new Set(Object.values(keys)).size === Object.keys(usualKeys).length
  if (!isRight)
    throw new CliError(
      `LINK_METADATA_KEYS must be pairs like state=doc_state,ix_id=doc_id, each of another one of ${Object.keys(usualKeys).join(', ')} and with a key of its own, or none; not '${text}'.`,
    )
  return keys
}

/** Longer than any proxy takes to notice. */
const longestDelay = 600

/** In milliseconds. */
export function parseShutdownDelay(text: string): number {
  const [, seconds] = /^(\d{1,3})s$/.exec(text) ?? []
  if (seconds === undefined || Number(seconds) > longestDelay)
    throw new CliError(
      `SHUTDOWN_DELAY must be a number of seconds and s, from 0s to ${longestDelay}s, like 5s, not '${text}'.`,
    )
  return Number(seconds) * 1_000
}

const windows: Record<string, number> = { s: 1, m: 60, h: 3_600 }

export function parseRateLimit(text: string): RateLimit | null {
  if (text === 'off') return null
  const [, requests, unit = ''] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  const seconds = windows[unit]
  if (requests === undefined || seconds === undefined)
    throw new CliError(`RATE_LIMIT must be like 100/s, 6000/m or 50000/h, or off, not '${text}'.`)
  return { requests: Number(requests), seconds }
}
