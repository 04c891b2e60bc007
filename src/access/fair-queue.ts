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

interface Flow {
  running: number
  /** Time of its next turn at an even pace. */
  due: number
}

interface Lane extends Flow {
  /** Requests that wait, run, or have to be known of for the pace. */
  held: number
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
  const overall: Flow = { running: 0, due: 0 }
  let nextLook: NodeJS.Timeout | undefined

  /** Starts every turn that may start, and sets a timer for the next one that only has to wait for its time. */
  function startWaiting(): void {
    clearTimeout(nextLook)
    for (;;) {
      const now = performance.now()
      const wait = waitOf(overall, inAll, now)
      const next = wait > 0 ? wait : findNext(now)
      if (typeof next === 'number') {
        // Who waits keeps the process by a timer of its own.
        if (next < unlimited) nextLook = setTimeout(startWaiting, next).unref()
        return
      }
      next()
    }
  }

  /** The next turn, whose group and member go to the end of the queue; or the milliseconds until there may be one. */
  function findNext(now: number): (() => void) | number {
    let soonest = unlimited
    for (const [group, circle] of circles) {
      if (circle.running >= perGroup) continue
      for (const [member, lane] of circle.lanes) {
        const [start] = lane.waiting
        if (start === undefined) continue
        const wait = waitOf(lane, perMember, now)
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
      const lane = getOrAdd(circle.lanes, member, () => ({ held: 0, running: 0, due: 0, waiting: new Set() }))
      const stopWaiting = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
        lane.waiting.delete(start)
        circle.waiting--
      }
      const start = () => {
        stopWaiting()
        const now = performance.now()
        overall.running++
        overall.due = Math.max(overall.due, now) + 1000 / inAllSecond
        circle.running++
        lane.running++
        lane.due = Math.max(lane.due, now) + 1000 / perMemberSecond
        resolve(end)
      }
      let isOver = false
      const end = () => {
        if (isOver) return
        isOver = true
        overall.running--
        circle.running--
        lane.running--
        startWaiting()
        // Until then its pace has to be known.
        setTimeout(forget, Math.max(0, lane.due - performance.now())).unref()
      }
      const forget = () => {
        if (--lane.held > 0) return
        circle.lanes.delete(member)
        if (circle.lanes.size === 0) circles.delete(group)
      }
      const giveUp = (reason: unknown) => {
        stopWaiting()
        forget()
        reject(reason)
      }
      const stop = () => giveUp(signal?.reason)
      const timer = setTimeout(() => {
        const now = performance.now()
        const isOwnFull = circle.running >= perGroup || waitOf(lane, perMember, now) > 0
        giveUp(refuse(isOwnFull || waitOf(overall, inAll, now) <= 0))
      }, waitMs)
      signal?.addEventListener('abort', stop)
      lane.held++
      lane.waiting.add(start)
      circle.waiting++
      startWaiting()
    })
}

/** Milliseconds until a turn may start; infinite when another has to end first. */
function waitOf({ running, due }: Flow, mostAtOnce: number, now: number): number {
  return running >= mostAtOnce ? unlimited : due - aheadMs - now
}

function getOrAdd<T>(map: Map<string, T>, key: string, create: () => T): T {
  const found = map.get(key)
  if (found !== undefined) return found
  const added = create()
  map.set(key, added)
  return added
}
