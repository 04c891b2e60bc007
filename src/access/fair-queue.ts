/**
 * A fair queue for something scarce, while clients wait: bounded at once and a second, for one member of a group, for one group
 * and in all. It serves groups round-robin, and the members of each group round-robin: no crowd stands before another's request.
 */

/** No limit where one is left out. */
export interface QueueLimits {
  /** Maximum at once for one member of one group. */
  perMember?: number
  /** Maximum starts a second for one member of one group; those of half a second may come together. */
  perMemberSecond?: number
  /** Maximum at once for one group. */
  perGroup: number
  /** Maximum at once in this process. */
  inAll?: number
  /** Maximum starts a second in this process. */
  inAllSecond?: number
  /** Maximum waiting for one group. */
  waitingPerGroup: number
  /** Maximum wait of a request. */
  waitMs: number
}

/** Resolves with what ends the turn; more than once does no harm. */
export type TakeTurn = (group: string, member: string, signal?: AbortSignal) => Promise<() => void>

const unlimited = Number.POSITIVE_INFINITY

/** Time by which a turn may start earlier than its even pace. */
const aheadMs = 500

interface Lane {
  running: number
  /** Time of its next turn at an even pace. */
  due: number
  waiting: Set<() => void>
}

interface Circle {
  running: number
  waiting: number
  lanes: Map<string, Lane>
}

/** Rejects with the error of `refuse`. `isOwn`: the group's own requests are in the way, not all. */
export function createFairQueue(limits: QueueLimits, refuse: (isOwn: boolean) => Error): TakeTurn {
  const { perGroup, waitingPerGroup, waitMs } = limits
  const { perMember = unlimited, perMemberSecond = unlimited } = limits
  const { inAll = unlimited, inAllSecond = unlimited } = limits
  const circles = new Map<string, Circle>()
  const overall = { running: 0, due: 0 }
  const laneSpacingMs = 1000 / perMemberSecond
  const spacingMs = 1000 / inAllSecond
  let nextLook: NodeJS.Timeout | undefined

  /** Milliseconds until a turn may start; infinite when another has to end first. */
  function waitFor(circle: Circle, lane: Lane, now: number): number {
    if (lane.running >= perMember || circle.running >= perGroup) return Number.POSITIVE_INFINITY
    return lane.due - aheadMs - now
  }

  function begin(group: string, member: string, circle: Circle, lane: Lane, now: number): () => void {
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
      setTimeout(() => forget(group, member, circle, lane), rest).unref()
    }
  }

  function forget(group: string, member: string, circle: Circle, lane: Lane): void {
    if (lane.running > 0 || lane.waiting.size > 0 || lane.due > performance.now() + 1) return
    if (circle.lanes.get(member) === lane) circle.lanes.delete(member)
    if (circle.lanes.size === 0 && circles.get(group) === circle) circles.delete(group)
  }

  /** Starts every turn that may start, and sets a timer for the next one that only has to wait for its time. */
  function startWaiting(): void {
    clearTimeout(nextLook)
    for (;;) {
      if (overall.running >= inAll) return
      const now = performance.now()
      let soonest = overall.due - aheadMs - now
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

  /** The next turn, whose group and member go to the end of the queue; or the milliseconds until there may be one. */
  function findNext(now: number): (() => void) | number {
    let soonest = Number.POSITIVE_INFINITY
    for (const [group, circle] of circles) {
      if (circle.waiting === 0 || circle.running >= perGroup) continue
      for (const [member, lane] of circle.lanes) {
        const [start] = lane.waiting
        if (start === undefined) continue
        const wait = waitFor(circle, lane, now)
        soonest = Math.min(soonest, wait)
        if (wait > 0) continue
        circles.delete(group)
        circles.set(group, circle)
        circle.lanes.delete(member)
        circle.lanes.set(member, lane)
        return start
      }
    }
    return soonest
  }

  return (group, member, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const circle = getOrAdd(circles, group, () => ({ running: 0, waiting: 0, lanes: new Map() }))
      if (circle.waiting >= waitingPerGroup) throw refuse(true)
      const lane = getOrAdd(circle.lanes, member, () => ({ running: 0, due: 0, waiting: new Set() }))
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
        lane.waiting.delete(start)
        circle.waiting--
      }
      const start = () => {
        leave()
        resolve(begin(group, member, circle, lane, performance.now()))
      }
      const giveUp = (reason: unknown) => {
        leave()
        forget(group, member, circle, lane)
        reject(reason)
      }
      const stop = () => giveUp(signal?.reason)
      const timer = setTimeout(() => giveUp(refuse(!isFull())), waitMs)
      /** Whether only others are in the way. */
      const isFull = () => {
        const now = performance.now()
        return waitFor(circle, lane, now) <= 0 && (overall.running >= inAll || overall.due - aheadMs > now)
      }
      signal?.addEventListener('abort', stop, { once: true })
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
