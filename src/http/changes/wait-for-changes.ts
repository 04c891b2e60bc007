/**
 * Lets requests wait for a change. The feed of all customers is read twice a second for all waiting requests. A
 * request goes on when its customer changed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { changeWaiting } from '../../sources/calls/telemetry.ts'
import type { ChangePage } from '../../store/change-store.ts'
import type { ReadStore } from '../../store/store.ts'
import { Places } from './places.ts'

const checkEveryMs = 500
/** A check that reads this many changes wakes all requests, because there may be more changes. */
const readAtOnce = 1_000
const defaultMaxWaiting = 2_000

const anyone = ''

export interface Waiter {
  /**
   * Resolves with true after a change since the request joined or was last woken. Resolves with false after `ms`, or
   * when the signal aborts.
   */
  wait(ms: number, signal: AbortSignal): Promise<boolean>
  /** Whether the request must be answered now, even without a change. */
  isOver(): boolean
  leave(): void
}

export class ChangeWaiters {
  private readonly store: Pick<ReadStore, 'readChanges'>
  private readonly places: Places<Member>
  /** The waiting requests, by the customer whose changes they want, or by `anyone`. */
  private readonly members = new Map<string, Set<Member>>()
  private released = false
  private timer: NodeJS.Timeout | undefined
  /** Position in the feed up to which the waiting requests know all changes. Null while no request waits. */
  private position: Promise<ChangePage | null> | null = null

  constructor(store: Pick<ReadStore, 'readChanges'>, maxWaiting = defaultMaxWaiting) {
    this.store = store
    this.places = new Places(maxWaiting)
  }

  /**
   * Resolves when every later change will be noticed. The caller then reads the existing changes, and waits. Resolves
   * with null when there is no place for the owner.
   */
  async join(customerId: string | null, owner: string): Promise<Waiter | null> {
    const member = this.enter(customerId ?? anyone, owner)
    if (member === null) return null
    try {
      if (this.position === null) await this.startWatching()
      else await this.position
      return member
    } catch (error) {
      this.position = null
      member.leave()
      throw error
    }
  }

  /** Ends all current and future waits. */
  release(): void {
    this.released = true
    this.wakeAll()
  }

  isReleased(): boolean {
    return this.released
  }

  private enter(name: string, owner: string): Member | null {
    const member = new Member(this, () => this.remove(member, name, owner))
    const { isTaken, gaveWay } = this.places.take(owner, member)
    if (!isTaken) return null
    gaveWay?.giveWay()
    this.members.set(name, (this.members.get(name) ?? new Set()).add(member))
    changeWaiting.publish(1)
    return member
  }

  private remove(member: Member, name: string, owner: string): void {
    this.places.leave(owner, member)
    const group = this.members.get(name)
    group?.delete(member)
    changeWaiting.publish(-1)
    if (group?.size === 0) this.members.delete(name)
    if (this.members.size > 0) return
    clearTimeout(this.timer)
    this.position = null
  }

  private async startWatching(): Promise<void> {
    const begun = this.store.readChanges(null, null, 1)
    this.position = begun
    await begun
    if (this.position === begun) this.schedule()
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.check(), checkEveryMs).unref()
  }

  /** Reads the changes since the last check, and wakes the requests whose customer changed. */
  private async check(): Promise<void> {
    const seen = this.position
    const after = await seen
    // A failure wakes all requests. Each request then meets the failure when it reads the store itself.
    const page = await this.store
      .readChanges(null, after?.next ?? null, readAtOnce, after?.life)
      .catch(() => null)
    // Here all requests have left during the read. Requests that joined afterwards have started a check of their own.
    if (this.position !== seen) return
    if (page === null || after === null || page.changes.length === readAtOnce) this.wakeAll()
    for (const { customer_id } of page?.changes ?? []) this.wake(customer_id)
    if (page !== null && page.changes.length > 0) this.wake(anyone)
    this.position = Promise.resolve(page)
    this.schedule()
  }

  private wake(name: string): void {
    for (const member of this.members.get(name) ?? []) member.wake()
  }

  private wakeAll(): void {
    for (const name of this.members.keys()) this.wake(name)
  }
}

class Member implements Waiter {
  readonly leave: () => void
  private readonly waiters: ChangeWaiters
  private woken = Promise.withResolvers<boolean>()
  private hasGivenWay = false

  constructor(waiters: ChangeWaiters, leave: () => void) {
    this.waiters = waiters
    this.leave = leave
    if (waiters.isReleased()) this.wake()
  }

  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    const passed = sleep(ms, false, { signal, ref: false }).catch(() => false)
    const isWoken = await Promise.race([this.woken.promise, passed])
    if (isWoken && !this.waiters.isReleased()) this.woken = Promise.withResolvers()
    return isWoken
  }

  isOver(): boolean {
    return this.waiters.isReleased() || this.hasGivenWay
  }

  wake(): void {
    this.woken.resolve(true)
  }

  /** Ends the wait, because another request takes this place. */
  giveWay(): void {
    this.hasGivenWay = true
    this.wake()
  }
}
