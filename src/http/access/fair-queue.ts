/**
 * A fair queue for something scarce, while clients wait: bounded at once and a second, for one member of a group, for one group
 * and in all. Groups are served in turn, and the members of each group in turn: no crowd stands before another's request.
 *
 * The check of new tokens needs both circles: a thousand forged tokens a second, which name one key, may come from the address of
 * good customers. Links of other keys then wait for one of them, and not for all.
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

/** Resolves with what frees the slot; more than once does no harm. */
export type TakeSlot = (group: string, member: string, signal?: AbortSignal) => Promise<() => void>

/** Rejects with the error of `refuse`. `isOwn`: the group's own requests are in the way, not all. */
export function createFairQueue(limits: QueueLimits, refuse: (isOwn: boolean) => Error): TakeSlot {
  const queue = new FairQueue(limits, refuse)
  return (group, member, signal) => queue.take(group, member, signal)
}

const unlimited = Number.POSITIVE_INFINITY

/** Time by which a slot may be given earlier than its even pace. */
const aheadMs = 500

/** Slots that are bounded together. */
class Bound {
  private running = 0
  /** Time of the next slot at an even pace. */
  private dueMs = 0
  private readonly atOnce: number
  private readonly perSecond: number

  constructor(atOnce = unlimited, perSecond = unlimited) {
    this.atOnce = atOnce
    this.perSecond = perSecond
  }

  /** Milliseconds until a slot may be given; infinite when another has to end first. */
  waitMs(nowMs: number): number {
    return this.running >= this.atOnce ? unlimited : this.dueMs - aheadMs - nowMs
  }

  begin(nowMs: number): void {
    this.running++
    this.dueMs = Math.max(this.dueMs, nowMs) + 1000 / this.perSecond
  }

  end(): void {
    this.running--
  }

  /** Milliseconds for which the slots so far have to be known, for the pace. */
  paceMs(nowMs: number): number {
    return Math.max(0, this.dueMs - nowMs)
  }
}

class Group extends Bound {
  waiting = 0
  readonly members = new Map<string, Member>()
}

class Member extends Bound {
  /** Requests that wait or run, and those that the pace has to know of. */
  requests = 0
  /** What starts each request that waits. */
  readonly waiting = new Set<() => void>()
}

class FairQueue {
  private readonly limits: QueueLimits
  private readonly refuse: (isOwn: boolean) => Error
  private readonly all: Bound
  /** The next one to be served first, as in the members of each. */
  private readonly groups = new Map<string, Group>()
  private timer: NodeJS.Timeout | undefined

  constructor(limits: QueueLimits, refuse: (isOwn: boolean) => Error) {
    this.limits = limits
    this.refuse = refuse
    this.all = new Bound(limits.inAll, limits.inAllSecond)
  }

  take(groupName: string, memberName: string, signal?: AbortSignal): Promise<() => void> {
    const { perGroup, perMember, perMemberSecond, waitingPerGroup, waitMs } = this.limits
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const group = getOrAdd(this.groups, groupName, () => new Group(perGroup))
      if (group.waiting >= waitingPerGroup) throw this.refuse(true)
      const member = getOrAdd(group.members, memberName, () => new Member(perMember, perMemberSecond))
      const forget = () => {
        if (--member.requests > 0) return
        group.members.delete(memberName)
        if (group.members.size === 0) this.groups.delete(groupName)
      }
      const stopWaiting = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', leave)
        member.waiting.delete(start)
        group.waiting--
      }
      const start = () => {
        stopWaiting()
        resolve(this.begin(group, member, forget))
      }
      const giveUp = (reason: unknown) => {
        stopWaiting()
        forget()
        reject(reason)
      }
      const leave = () => giveUp(signal?.reason)
      const timer = setTimeout(() => giveUp(this.refuse(this.isOwnFault(group, member))), waitMs)
      signal?.addEventListener('abort', leave)
      member.requests++
      member.waiting.add(start)
      group.waiting++
      this.startWaiting()
    })
  }

  /** Returns what frees the slot. */
  private begin(group: Group, member: Member, forget: () => void): () => void {
    const bounds = [this.all, group, member]
    const nowMs = performance.now()
    for (const bound of bounds) bound.begin(nowMs)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      for (const bound of bounds) bound.end()
      this.startWaiting()
      setTimeout(forget, member.paceMs(performance.now())).unref()
    }
  }

  /** Starts every request that may start, and comes back when the next one only had to wait for its time. */
  private startWaiting(): void {
    clearTimeout(this.timer)
    let waitMs: number
    do waitMs = this.startNext(performance.now())
    while (waitMs <= 0)
    // Who waits keeps the process by a timer of its own.
    if (waitMs < unlimited) this.timer = setTimeout(() => this.startWaiting(), waitMs).unref()
  }

  /** Starts one request, whose group and member become the last ones, and returns 0; or the milliseconds until one may start. */
  private startNext(nowMs: number): number {
    const waitMs = this.all.waitMs(nowMs)
    if (waitMs > 0) return waitMs
    let soonestMs = unlimited
    for (const [groupName, group] of this.groups) {
      if (group.waitMs(nowMs) > 0) continue
      for (const [memberName, member] of group.members) {
        const [start] = member.waiting
        if (start === undefined) continue
        const memberWaitMs = member.waitMs(nowMs)
        if (memberWaitMs <= 0) {
          moveToEnd(this.groups, groupName, group)
          moveToEnd(group.members, memberName, member)
          start()
          return 0
        }
        soonestMs = Math.min(soonestMs, memberWaitMs)
      }
    }
    return soonestMs
  }

  /** Why a request waited for too long: for others of its group, or because nobody was in the way any more. */
  private isOwnFault(group: Group, member: Member): boolean {
    const nowMs = performance.now()
    return group.waitMs(nowMs) > 0 || member.waitMs(nowMs) > 0 || this.all.waitMs(nowMs) <= 0
  }
}

function moveToEnd<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
}

function getOrAdd<T>(map: Map<string, T>, key: string, create: () => T): T {
  const found = map.get(key)
  if (found !== undefined) return found
  const added = create()
  map.set(key, added)
  return added
}
