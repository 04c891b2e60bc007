/** Stripe's client library with a fixed API version and without its own retries. No request is sent during a pause that Stripe asks for. */
import type { OutgoingHttpHeaders } from 'node:http'
import type Stripe from 'stripe'
import { createExchange, type ExchangeOptions, parseJson } from '../calls/exchange.ts'
import type { Pace } from '../calls/paced-calls.ts'
import { StripeSdk } from './sdk.ts'

export interface StripeOptions {
  apiKey: string
  /** Address of the API, for example https://api.stripe.com. */
  base: string
  timeoutMs?: number
}

/** The API version is fixed, because the mapping depends on this version's fields. */
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
    // Requests go through `createExchange`, like the requests to every upstream.
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

/** Whether an address belongs to Stripe. Any other address is a sandbox. */
export function isStripesOwn(base: string): boolean {
  return new URL(base).hostname.endsWith('.stripe.com')
}

/**
 * Returns the object of an answer. Stripe's client takes every object without `error`
 * for a success, so an answer with status 400 or above always gets an `error`.
 */
function readObject(status: number, text: string): object {
  const value = parseJson(text)
  const isObject = typeof value === 'object' && value !== null
  if (status >= 400 && !(isObject && 'error' in value && value.error))
    return { error: { message: 'unreadable' } }
  if (isObject) return value
  throw new Error('Stripe sent an answer that is no JSON object')
}

const patient = { attempts: 6, patienceMs: 60_000 }
/** Rates below Stripe's limits, which are 100 requests per second in live mode, 25 in test mode, and 25 for each endpoint. */
const livePace: Pace = { perSecond: 80, perEndpoint: 20, slowlyPerSecond: 4, ...patient }
const testPace: Pace = { ...livePace, perSecond: 20 }
const sandboxPace: Pace = { perSecond: 10_000, slowlyPerSecond: 100, ...patient }

export function paceFor({ base, apiKey }: StripeOptions): Pace {
  // Requests with a live key reach Stripe, even when the address belongs to a proxy.
  if (/^.k_live_/.test(apiKey)) return livePace
  if (!isStripesOwn(base)) return sandboxPace
  return /^.k_test_/.test(apiKey) ? testPace : livePace
}
