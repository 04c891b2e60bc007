/** Reads the API's own routes: every check, limit and wall of theirs holds for the tools. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

export interface ReadAnswer {
  /** Integers beyond 2^53 are bigints. */
  // biome-ignore lint/suspicious/noExplicitAny: a shape of the contract, which the tool knows
  json: any
  synced_at: string | null
}

/** Headers that the inner request takes over: the token, and the way that the request came. */
const passedOn = ['authorization', 'traceparent', 'x-forwarded-for', 'forwarded']

export async function readApi(
  app: FastifyInstance,
  { headers, raw }: FastifyRequest,
  url: string,
  signal: AbortSignal,
): Promise<ReadAnswer> {
  const answer = await app.inject({
    ...{ method: 'GET', url, signal, remoteAddress: raw.socket.remoteAddress ?? '' },
    headers: Object.fromEntries(passedOn.flatMap(name => (headers[name] ? [[name, headers[name]]] : []))),
  })
  const json = JSON.parse(answer.body, keepDigits)
  const { 'fatura-synced-at': syncedAt, 'retry-after': retryAfter } = answer.headers
  if (answer.statusCode === 200) return { json, synced_at: syncedAt === undefined ? null : String(syncedAt) }
  const { code, message } = json.error
  throw new ApiError(code, message, retryAfter === undefined ? {} : { retryAfter: Number(retryAfter) })
}

function keepDigits(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && source !== undefined ? BigInt(source) : value
}
