/** What costs much more than a page: how many of one token's may be under way at once. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Turns } from '../access/turns.ts'
import { ApiError } from '../errors.ts'

/** A third waits: a page that searches while somebody types should not have to know of a limit. */
const limits = { maxAtOnce: 2, maxWaiting: 50, maxWaitMs: 1_000 }

export type RunExpensive = <Result>(
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<Result>,
) => Promise<Result>

export function limitExpensive(): RunExpensive {
  const turns = new Turns(limits)
  return async (request, reply, work) => {
    const end = await turns.take(request.grant?.token_id ?? '')
    if (end === null)
      throw new ApiError(
        'rate_limited',
        `This token has ${limits.maxAtOnce} searches under way, and others waiting.`,
        { retryAfter: 1 },
      )
    try {
      if (reply.raw.destroyed) throw new ApiError('unavailable', 'The client went away before its turn came.')
      return await work()
    } finally {
      end()
    }
  }
}
