/**
 * Turns at an upstream, while clients wait: bounded at once and a second, for one customer, for one token and in
 * all. Those who wait are served in a circle of tokens, and within a token in a circle of its customers: nobody's crowd
 * stands before anybody else's request.
 */
import { ApiError } from '../errors.ts'

export interface TurnLimits {
  /** At once, for one customer of one token. */
  perCustomer: number
  /** Started a second, for one customer of one token; those of half a second may start together. */
  perCustomerSecond: number
  /** At once, for one token. */
  perToken: number
  /** At once, in this process. */
  inAll: number
  /** Started a second, in this process. */
  inAllSecond: number
  /** Waiting, for one token. */
  waitingPerToken: number
  /** How long a request waits for its turn. */
  waitMs: number
}

/** Resolves with what ends the turn; more than once does no harm. */
export type TakeTurn = (tokenId: string, customerId: string, signal: AbortSignal) => Promise<() => void>

/** In seconds, when a turn did not come in time: by then many of those before had theirs. */
const retryAfter = 5

/** How much earlier than its even pace a turn may start, in milliseconds. */
const ahead = 500

interface Lane {
  running: number
  /** When its next turn would be, were they evenly spaced. */
  due: number
  waiting: Set<() => void>
}

interface Circle {
  running: number
  waiting: number
  lanes: Map<string, Lane>
}

/** Rejects with `rate_limited` when the token's own requests are in the way, with `unavailable` when all are. */
export function createFairTurns(limits: TurnLimits): TakeTurn {
  const { perCustomer, perCustomerSecond, perToken, inAll, inAllSecond, waitingPerToken, waitMs } = limits
  const circles = new Map<string, Circle>()
  const overall = { running: 0, due: 0 }
  const laneSpacingMs = 1000 / perCustomerSecond
  const spacingMs = 1000 / inAllSecond
  let nextLook: NodeJS.Timeout | undefined

  /** In milliseconds; infinite when a turn has to end first. */
  function waitFor(circle: Circle, lane: Lane, now: number): number {
    if (lane.running >= perCustomer || circle.running >= perToken) return Number.POSITIVE_INFINITY
    return lane.due - ahead - now
  }

  function begin(tokenId: string, customerId: string, circle: Circle, lane: Lane, now: number): () => void {
    overall.running++
    overall.due = Math.max(overall.due, now) + spacingMs
    circle.running++
    lane.running++
    lane.due = Math.max(lane.due, now) + laneSpacingMs
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      overall.running--
      circle.running--
      lane.running--
      startWaiting()
      // Until then its pace has to be known.
      const rest = Math.max(0, lane.due - performance.now())
      setTimeout(() => forget(tokenId, customerId, circle, lane), rest).unref()
    }
  }

  function forget(tokenId: string, customerId: string, circle: Circle, lane: Lane): void {
    if (lane.running > 0 || lane.waiting.size > 0 || lane.due > performance.now() + 1) return
    if (circle.lanes.get(customerId) === lane) circle.lanes.delete(customerId)
    if (circle.lanes.size === 0 && circles.get(tokenId) === circle) circles.delete(tokenId)
  }

  /** Whoever may start does; when only time is in the way, looks again then. */
  function startWaiting(): void {
    clearTimeout(nextLook)
    for (;;) {
      if (overall.running >= inAll) return
      const now = performance.now()
      let soonest = overall.due - ahead - now
      if (soonest <= 0) {
        const found = findNext(now)
        if (typeof found !== 'number') {
          found()
          continue
        }
        soonest = found
      }
      const isAnyWaiting = circles.values().some(({ waiting }) => waiting > 0)
      if (isAnyWaiting && soonest < Number.POSITIVE_INFINITY)
        nextLook = setTimeout(startWaiting, Math.max(1, soonest))
      return
    }
  }

  /** The next in the circle, which then goes to its end; or how long until there may be one. */
  function findNext(now: number): (() => void) | number {
    let soonest = Number.POSITIVE_INFINITY
    for (const [tokenId, circle] of circles) {
      if (circle.waiting === 0) continue
      for (const [customerId, lane] of circle.lanes) {
        const [start] = lane.waiting
        if (start === undefined) continue
        const wait = waitFor(circle, lane, now)
        soonest = Math.min(soonest, wait)
        if (wait > 0) continue
        circles.delete(tokenId)
        circles.set(tokenId, circle)
        circle.lanes.delete(customerId)
        circle.lanes.set(customerId, lane)
        return start
      }
    }
    return soonest
  }

  return (tokenId, customerId, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const circle = getOrAdd(circles, tokenId, () => ({ running: 0, waiting: 0, lanes: new Map() }))
      if (circle.waiting >= waitingPerToken) throw tooMany()
      const lane = getOrAdd(circle.lanes, customerId, () => ({ running: 0, due: 0, waiting: new Set() }))
      const leave = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
        lane.waiting.delete(start)
        circle.waiting--
      }
      const start = () => {
        leave()
        resolve(begin(tokenId, customerId, circle, lane, performance.now()))
      }
      const giveUp = (reason: unknown) => {
        leave()
        forget(tokenId, customerId, circle, lane)
        reject(reason)
      }
      const stop = () => giveUp(signal.reason)
      const timer = setTimeout(() => giveUp(isFull() ? busy() : tooMany()), waitMs)
      /** Whether only others are in the way. */
      const isFull = () => {
        const now = performance.now()
        return waitFor(circle, lane, now) <= 0 && (overall.running >= inAll || overall.due - ahead > now)
      }
      signal.addEventListener('abort', stop, { once: true })
      lane.waiting.add(start)
      circle.waiting++
      startWaiting()
    })
}

function getOrAdd<T>(map: Map<string, T>, key: string, create: () => T): T {
  const found = map.get(key)
  if (found !== undefined) return found
  const added = create()
  map.set(key, added)
  return added
}

function tooMany(): ApiError {
  return new ApiError(
    'rate_limited',
    'Too many requests of this token wait for documents already; send fewer at once.',
    { retryAfter },
  )
}

function busy(): ApiError {
  return new ApiError('unavailable', 'Too many documents are asked for right now; try again shortly.', {
    retryAfter,
  })
}
