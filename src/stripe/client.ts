/** Stripe's own client, as we use it: one API version, no retries of its own, and held back as Stripe asks. */
import Stripe from 'stripe'
import { createHttpClient } from './http-client.ts'

export interface StripeOptions {
  apiKey: string
  /** Where the API is, as in https://api.stripe.com. */
  base: string
  /** In milliseconds, for one request. */
  timeout?: number
}

/** Pinned: the mapping knows this version's fields. */
const apiVersion = '2026-10-28.endive'

export function createStripe({ apiKey, base, timeout = 20_000 }: StripeOptions): Stripe {
  const { protocol, hostname, port } = new URL(base)
  return new Stripe(apiKey, {
    apiVersion,
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port !== '' && { port }),
    httpClient: createHttpClient(),
    telemetry: false,
    maxNetworkRetries: 0,
    timeout,
  })
}

/** Any other address is a sandbox's. */
export function isStripesOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.stripe.com')
}

/** However long Stripe asks us to wait, we look again after this. */
const longestPause = 60_000
/** When it says nothing that can be read. */
const usualPause = 1_000

/** What `Retry-After` asks for, in milliseconds: seconds or a date, never more than a minute; garbage is passed over. */
export function readRetryAfter(value: string | undefined, now: number): number {
  const text = value?.trim() ?? ''
  const asked = /^\d+$/.test(text)
    ? Number(text) * 1000
    : /[a-z]{3}/i.test(text)
      ? Date.parse(text) - now
      : Number.NaN
  return Number.isNaN(asked) ? usualPause : Math.min(Math.max(asked, 0), longestPause)
}
