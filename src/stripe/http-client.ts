/** Stripe's own HTTP client, with its answers bounded: any bytes at all must end in an answer or an error. */
import type { IncomingMessage } from 'node:http'
import { traceHeaders } from '../trace.ts'
import { parseJson, readText } from '../upstream/read-text.ts'
import { StripeSdk } from './sdk.ts'

/** Far more than a page of a hundred invoices. */
const maxBytes = 32 * 1024 * 1024

type Client = ReturnType<typeof StripeSdk.createNodeHttpClient>
type Answer = Awaited<ReturnType<Client['makeRequest']>>

export function createHttpClient(): Client {
  const client = StripeSdk.createNodeHttpClient()
  return {
    getClientName: () => client.getClientName(),
    makeRequest: async (host, port, path, method, headers, ...rest) =>
      bound(
        await client.makeRequest(
          host,
          port,
          path,
          method,
          { ...(headers as object), ...traceHeaders() },
          ...rest,
        ),
      ),
  }
}

function bound(answer: Answer): Answer {
  return {
    getStatusCode: () => answer.getStatusCode(),
    getHeaders: () => answer.getHeaders(),
    getRawResponse: () => answer.getRawResponse(),
    toStream: done => answer.toStream(done),
    toJSON: () => readObject(answer),
  }
}

/** The client takes an object for granted: a bare number or text in an answer would end the process. */
async function readObject(answer: Answer): Promise<object> {
  const value = parseJson(await readText(answer.getRawResponse() as IncomingMessage, 'Stripe', maxBytes))
  if (typeof value === 'object' && value !== null) return value
  // An error stays one, with its status and its headers, whatever its body says.
  if (answer.getStatusCode() >= 400) return { error: { message: 'unreadable' } }
  throw new Error('Stripe answered what is not a JSON object')
}
