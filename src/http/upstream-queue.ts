/** Queues requests for an upstream system, fairly among tokens and among the customers of each token. */
import { addAbortListener } from 'node:events'
import { ApiError } from '../domain/errors.ts'
import { createFairQueue, type QueueLimits, type TakeSlot } from './access/fair-queue.ts'

const retry = { retryAfter: 5 }

/**
 * Rejects with `rate_limited` when the token's own requests reach a limit, and with `unavailable` when the requests of
 * all tokens together reach theirs.
 */
export function createUpstreamQueue(
  source: { perSecond?: number } | null,
  limits: Omit<QueueLimits, 'inAll' | 'inAllSecond' | 'waitingPerGroup'>,
): TakeSlot {
  const inAllSecond = source?.perSecond ?? Number.POSITIVE_INFINITY
  return createFairQueue({ ...limits, inAll: 64, inAllSecond, waitingPerGroup: 500 }, isOwn =>
    isOwn
      ? new ApiError(
          'rate_limited',
          'Too many requests of this token wait for documents already; send fewer at once.',
          retry,
        )
      : new ApiError('unavailable', 'Too many documents are asked for right now; try again shortly.', retry),
  )
}

/** Returns the result of `work`, or rejects as soon as the signal aborts. A source may ignore its signal. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => addAbortListener(signal, () => reject(signal.reason)))
  return Promise.race([work, aborted])
}
