/** Sends the requests of Stripe's client as all requests to an upstream are sent. */
import type { OutgoingHttpHeaders } from 'node:http'
import { createExchange, type ExchangeOptions, parseJson } from '../upstream/exchange.ts'
import type { StripeSdk } from './sdk.ts'

type Client = ReturnType<typeof StripeSdk.createNodeHttpClient>

export function createHttpClient(base: string, refusal?: ExchangeOptions['refusal']): Client {
  const exchange = createExchange({
    ...{ name: 'Stripe', base, setting: 'STRIPE_API_BASE' },
    ...(refusal && { refusal }),
  })
  return {
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
  }
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
