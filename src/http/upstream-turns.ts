/** Turns at an upstream, in a circle of tokens, and of the customers of each. */
import { createFairTurns, type TakeTurn, type TurnLimits } from '../access/fair-turns.ts'
import { ApiError } from '../errors.ts'

/** In seconds, when a turn did not come in time: by then many of those before had theirs. */
const retryAfter = 5

/** Rejects with `rate_limited` when the token's own requests are in the way, with `unavailable` when all are. */
export function createUpstreamTurns(limits: TurnLimits): TakeTurn {
  return createFairTurns(limits, isOwn =>
    isOwn
      ? new ApiError(
          'rate_limited',
          'Too many requests of this token wait for documents already; send fewer at once.',
          { retryAfter },
        )
      : new ApiError('unavailable', 'Too many documents are asked for right now; try again shortly.', {
          retryAfter,
        }),
  )
}
