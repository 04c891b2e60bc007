/**
 * A fair queue for a scarce resource. It limits running requests and starts per second, for each member of a group,
 * for each group and for all groups. Groups are served in turn, and so are the members of each group. For the check
 * of tokens, a group is an address and a member is the id of a key or a token. Many forged tokens with the id of one
 * key then hardly delay the tokens of other keys, even from the same address.
 */

/**
 * Limits of the requests of one member, of one group and of all groups in this process. A limit that is left out does
 * not apply.
 */
export interface QueueLimits {
  perMember?: number
  /** Maximum of starts per second. The starts of half a second may happen at once. */
  perMemberSecond?: number
  perGroup: number
  inAll?: number
  inAllSecond?: number
  waitingPerGroup: number
  /** Milliseconds after which a waiting request is refused. */
  waitMs: number
}

/** Resolves with a function that frees the slot. A second call of that function does nothing. */
export type TakeSlot = (group: string, member: string, signal?: AbortSignal) => Promise<() => void>

/**
 * Rejects with the error of `refuse`. `isOwn` is true when the group or the member reached its limit, and false when
 * all groups together reached theirs.
 */
export function createFairQueue(limits: QueueLimits, refuse: (isOwn: boolean) => Error): TakeSlot {
  const queue = new FairQueue(limits, refuse)
  return (group, member, signal) => queue.take(group, member, signal)
}

const unlimited = Number.POSITIVE_INFINITY

/** A limit per second spreads slots evenly over time. A slot may be given this much earlier. */
const aheadMs = 500

class Bound {
  private running = 0
  /** Time of the next evenly spread slot, by the monotonic clock. */
  private dueMs = 0
  private readonly atOnce: number
  private readonly perSecond: number

  constructor(atOnce = unlimited, perSecond = unlimited) {
    this.atOnce = atOnce
    this.perSecond = perSecond
  }

  /** Milliseconds until a slot may be given. Infinite when a running request must end first. */
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

  /** Milliseconds until the requests that started so far no longer delay others. */
  paceMs(nowMs: number): number {
    return Math.max(0, this.dueMs - nowMs)
  }
}

class Group extends Bound {
  waiting = 0
  readonly members = new Map<string, Member>()
}

class Member extends Bound {
  /** Number of requests that wait, that run, or that started so recently that they still delay others. */
  requests = 0
  readonly waiting = new Set<() => void>()
}

class FairQueue {
  private readonly limits: QueueLimits
  private readonly refuse: (isOwn: boolean) => Error
  private readonly all: Bound
  /** Groups in the order in which they are served. Each group orders its members in the same way. */
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

  /** Starts every request that may start. Sets a timer when only the rate per second keeps a request waiting. */
  private startWaiting(): void {
    clearTimeout(this.timer)
    let waitMs: number
    do waitMs = this.startNext(performance.now())
    while (waitMs <= 0)
    // This timer need not keep the process alive, because each waiting request has a timer of its own.
    if (waitMs < unlimited) this.timer = setTimeout(() => this.startWaiting(), waitMs).unref()
  }

  /**
   * Starts one request, moves its group and member to the end of the order, and returns 0. If no request may start,
   * returns the milliseconds until one may.
   */
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

  /**
   * Returns true when the limit of the group or the member kept a request waiting, or when no limit is reached any
   * more.
   */
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
