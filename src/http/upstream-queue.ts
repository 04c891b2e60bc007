/** The queue of requests for an upstream, fair to tokens and to the customers of each. */
import { addAbortListener } from 'node:events'
import { ApiError } from '../domain/errors.ts'
import { createFairQueue, type QueueLimits, type TakeSlot } from './access/fair-queue.ts'

const retry = { retryAfter: 5 }

/** Rejects with `rate_limited` when the token's own requests are in the way, with `unavailable` when all are. */
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

/** The work's result, or the signal's reason as soon as it is aborted: a source may ignore its signal. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => addAbortListener(signal, () => reject(signal.reason)))
  return Promise.race([work, aborted])
}
