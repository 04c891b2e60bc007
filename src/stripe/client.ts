/** Stripe's own client: one API version, no retries of its own, and paused when Stripe asks for it. */
import type Stripe from 'stripe'
import type { ExchangeOptions } from '../upstream/exchange.ts'
import { createHttpClient } from './http-client.ts'
import { StripeSdk } from './sdk.ts'

export interface StripeOptions {
  apiKey: string
  /** The API's address, as in https://api.stripe.com. */
  base: string
  /** For one request. */
  timeoutMs?: number
}

/** Pinned: the mapping knows this version's fields. */
export const apiVersion = '2026-10-28.endive'

export function createStripe(
  { apiKey, base, timeoutMs = 20_000 }: StripeOptions,
  refusal?: ExchangeOptions['refusal'],
): Stripe {
  const { protocol, hostname, port } = new URL(base)
  return new StripeSdk(apiKey, {
    apiVersion,
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port !== '' && { port }),
    httpClient: createHttpClient(base, refusal),
    telemetry: false,
    maxNetworkRetries: 0,
    timeout: timeoutMs,
  })
}

/** Any other address is a sandbox's. */
export function isStripesOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.stripe.com')
}
