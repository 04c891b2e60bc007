/** Limits the searches of one token at a time: each costs much more than a page. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createFairQueue } from '../access/fair-queue.ts'
import { ApiError } from '../errors.ts'

/** A third one waits, so that a page may search at every keystroke without knowing of the limit. */
const maxAtOnce = 2
const limits = { perGroup: maxAtOnce, waitingPerGroup: 50, waitMs: 1_000 }

export type RunSearch = <Result>(
  request: FastifyRequest,
  reply: FastifyReply,
  search: () => Promise<Result>,
) => Promise<Result>

export function limitSearches(): RunSearch {
  const takeTurn = createFairQueue(
    limits,
    () =>
      new ApiError('rate_limited', `This token has ${maxAtOnce} searches under way, and others waiting.`, {
        retryAfter: 1,
      }),
  )
  return async (request, reply, search) => {
    const endTurn = await takeTurn(request.grant?.token_id ?? '', '')
    try {
      if (reply.raw.destroyed) throw new ApiError('unavailable', 'The client went away before its turn came.')
      return await search()
    } finally {
      endTurn()
    }
  }
}
