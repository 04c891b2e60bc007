/** Limits the requests of each token. Each token has a fixed window, counted in this process. */
import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../domain/errors.ts'
import type { Grant } from './access/grant.ts'
import { createWindows, remainingSeconds } from './access/windows.ts'

export interface RateLimit {
  requests: number
  seconds: number
}

export function createRateLimiter({ requests, seconds }: RateLimit) {
  const windows = createWindows(seconds)
  return (tokenId: string) => {
    const nowMs = performance.now()
    const window = windows.add(tokenId, nowMs)
    return {
      allowed: window.count <= requests,
      remaining: Math.max(0, requests - window.count),
      /** Seconds until the window ends and the count begins again. */
      reset: remainingSeconds(window, nowMs),
    }
  }
}

/** Takes one request from the token's budget. Throws when the budget is used up. */
export type SpendRequest = (grant: Grant, reply: FastifyReply) => void

/** Null when there is no rate limit. All routes share one budget for each token. */
export function createRequestBudget(rateLimit: RateLimit | null): SpendRequest | null {
  if (rateLimit === null) return null
  const take = createRateLimiter(rateLimit)
  const policy = `"default";q=${rateLimit.requests};w=${rateLimit.seconds}`
  return (grant, reply) => {
    const { allowed, remaining, reset } = take(grant.token_id)
    reply.header('ratelimit-policy', policy)
    reply.header('ratelimit', `"default";r=${remaining};t=${reset}`)
    if (!allowed)
      throw new ApiError(
        'rate_limited',
        `This token may send ${rateLimit.requests} requests in ${rateLimit.seconds} s.`,
        { retryAfter: reset },
      )
  }
}

/**
 * Header of a request that the service sends to its own routes, for a request that was counted already. Its value
 * never leaves the process.
 */
export const countedHeader = 'fatura-counted'
export const countedValue = randomUUID()

export function isCounted({ headers }: FastifyRequest): boolean {
  return headers[countedHeader] === countedValue
}
