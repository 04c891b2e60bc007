/** Stripe's own client: one API version, no retries of its own, and paused when Stripe asks for it. */
import type { OutgoingHttpHeaders } from 'node:http'
import type Stripe from 'stripe'
import { createExchange, type ExchangeOptions, parseJson } from '../calls/exchange.ts'
import type { Pace } from '../calls/paced-calls.ts'
import { StripeSdk } from './sdk.ts'

export interface StripeOptions {
  apiKey: string
  /** The API's address, as in https://api.stripe.com. */
  base: string
  timeoutMs?: number
}

/** Pinned: the mapping knows this version's fields. */
export const apiVersion = '2026-10-28.endive'

export function createStripe(
  { apiKey, base, timeoutMs = 20_000 }: StripeOptions,
  refusal?: ExchangeOptions['refusal'],
): Stripe {
  const { protocol, hostname, port } = new URL(base)
  const exchange = createExchange({ name: 'Stripe', base, setting: 'STRIPE_API_BASE', refusal })
  return new StripeSdk(apiKey, {
    apiVersion,
    host: hostname,
    protocol: protocol === 'http:' ? 'http' : 'https',
    ...(port !== '' && { port }),
    // Requests are sent as all requests to an upstream are.
    httpClient: {
      getClientName: () => 'node',
      async makeRequest(_host, _port, path, method, headers, body, _protocol, timeout) {
        const options = { method, headers: headers as OutgoingHttpHeaders, timeout }
        const answer = await exchange(new URL(path, base), options, body)
        return {
          getStatusCode: () => answer.status,
          getHeaders: () => answer.headers as Record<string, string>,
          getRawResponse: () => answer,
          toStream: () => {
            throw new Error('No answer of Stripe is read as a stream')
          },
          toJSON: async () => readObject(answer.status, answer.text),
        }
      },
    },
    telemetry: false,
    maxNetworkRetries: 0,
    timeout: timeoutMs,
  })
}

/** Any other address is a sandbox's. */
export function isStripesOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.stripe.com')
}

/** The client expects an object, and takes any without `error` for a success: an error stays one, whatever its body holds. */
function readObject(status: number, text: string): object {
  const value = parseJson(text)
  const isObject = typeof value === 'object' && value !== null
  if (status >= 400 && !(isObject && 'error' in value && value.error))
    return { error: { message: 'unreadable' } }
  if (isObject) return value
  throw new Error('Stripe sent an answer that is no JSON object')
}

const patient = { attempts: 6, patienceMs: 60_000 }
/** Below Stripe's limits: 100 a second in live mode, 25 in test mode, and 25 for each endpoint. */
const livePace: Pace = { perSecond: 80, perEndpoint: 20, slowlyPerSecond: 4, ...patient }
const testPace: Pace = { ...livePace, perSecond: 20 }
/** A sandbox has no limits by default. */
const sandboxPace: Pace = { perSecond: 10_000, slowlyPerSecond: 100, ...patient }

export function paceFor({ base, apiKey }: StripeOptions): Pace {
  // A live key leads to Stripe, also through a proxy.
  if (/^.k_live_/.test(apiKey)) return livePace
  if (!isStripesOwn(base)) return sandboxPace
  return /^.k_test_/.test(apiKey) ? testPace : livePace
}
