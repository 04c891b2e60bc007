/** Requests that wait for a change: the feed of all customers is read twice a second for all of them, and those whose customer changed go on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { changeWaiting } from '../../sources/calls/telemetry.ts'
import type { ChangePage } from '../../store/change-store.ts'
import type { ReadStore } from '../../store/store.ts'
import { Places } from './places.ts'

const lookEveryMs = 500
/** More changes than these between two looks wake everybody. */
const readAtOnce = 1_000
const defaultMaxWaiting = 2_000

const anyone = ''

export interface Waiter {
  /** Resolves with true at a change since it joined or was last woken; with false after the given time, or at the signal. */
  wait(ms: number, signal: AbortSignal): Promise<boolean>
  /** Whether it is to be answered now, whatever it waits for. */
  isOver(): boolean
  /** Ends the wait: another takes its place. */
  giveWay(): void
  leave(): void
}

export function createChangeWaiters(store: Pick<ReadStore, 'readChanges'>, maxWaiting = defaultMaxWaiting) {
  const members = new Map<string, Set<() => void>>()
  const places = new Places<Waiter>(maxWaiting)
  let isReleased = false
  let timer: NodeJS.Timeout | undefined
  /** The place up to which the feed is known to the present members. */
  let place: Promise<ChangePage | null> | null = null

  const wake = (name: string) => members.get(name)?.forEach(wakeOne => void wakeOne())
  const wakeAll = () => [...members.keys()].forEach(wake)

  async function look(): Promise<void> {
    const seen = place
    const after = await seen
    // A store that cannot be read is reported to the requests themselves, when they read.
    const page = await store.readChanges(null, after?.next ?? null, readAtOnce, after?.life).catch(() => null)
    // All have left meanwhile; for others who came, another look is planned.
    if (place !== seen) return
    if (page === null || after === null || page.changes.length === readAtOnce) wakeAll()
    for (const { customer_id } of page?.changes ?? []) wake(customer_id)
    if (page !== null && page.changes.length > 0) wake(anyone)
    place = Promise.resolve(page)
    schedule()
  }

  function schedule(): void {
    timer = setTimeout(() => void look(), lookEveryMs).unref()
  }

  function createWaiter(name: string, owner: string) {
    let woken = Promise.withResolvers<boolean>()
    const wakeOne = () => woken.resolve(true)
    if (isReleased) wakeOne()
    const group = members.get(name) ?? new Set()
    let hasGivenWay = false
    const waiter: Waiter = {
      async wait(ms, signal) {
        const passed = sleep(ms, false, { signal, ref: false }).catch(() => false)
        const isWoken = await Promise.race([woken.promise, passed])
        if (isWoken && !isReleased) woken = Promise.withResolvers()
        return isWoken
      },
      isOver: () => isReleased || hasGivenWay,
      giveWay() {
        hasGivenWay = true
        wakeOne()
      },
      leave() {
        places.leave(owner, waiter)
        group.delete(wakeOne)
        changeWaiting.publish(-1)
        if (group.size === 0) members.delete(name)
        if (members.size > 0) return
        clearTimeout(timer)
        place = null
      },
    }
    const { isTaken, gaveWay } = places.take(owner, waiter)
    if (!isTaken) return null
    gaveWay?.giveWay()
    members.set(name, group.add(wakeOne))
    changeWaiting.publish(1)
    return waiter
  }

  return {
    /** Resolves once every later change is noticed: read changes after this, then wait. Null when there is no place for the owner. */
    async join(customerId: string | null, owner: string) {
      const waiter = createWaiter(customerId ?? anyone, owner)
      if (waiter === null) return null
      try {
        if (place === null) {
          const begun = store.readChanges(null, null, 1)
          place = begun
          await begun
          if (place === begun) schedule()
        } else await place
        return waiter
      } catch (error) {
        place = null
        waiter.leave()
        throw error
      }
    },
    /** Ends all waits, and those to come. */
    release() {
      isReleased = true
      wakeAll()
    },
    isReleased: () => isReleased,
  }
}
