/**
 * Keeps guesses from slowing the service. An address that sends many tokens that turn out to be nobody's is refused without
 * looking at the next. Several clients may share an address, so a token that worked within the last hour is let in all the
 * same: what it costs is bounded by itself.
 */
import { isIPv6 } from 'node:net'
import { ApiError } from '../errors.ts'
import { RecentMap } from './recent-map.ts'
import { Turns } from './turns.ts'
import { createWindows, secondsLeft } from './windows.ts'

/** How many unknown tokens one address may send within how many seconds, before only tokens that worked are let in. */
const failureLimit = { failures: 100, seconds: 10 }

/** Lookups of one address. Good tokens that come together, as after a restart, wait for each other and are not refused. */
const lookupLimits = { maxAtOnce: 20, maxWaiting: 1_000, maxWaitMs: 1_000 }

/** For how long a token that worked is let in whatever else its address sends. */
const keepWorkedMs = 60 * 60 * 1000
const maxWorked = 100_000

export class LookupGuard {
  private readonly failures = createWindows(failureLimit.seconds)
  private readonly lookups = new Turns(lookupLimits)
  private readonly worked = new RecentMap<true>({ keepMs: keepWorkedMs, maxEntries: maxWorked })

  noteFailure(address: string): void {
    this.failures.add(address, performance.now())
  }

  noteWorked(hash: string): void {
    this.worked.set(hash, true, performance.now())
  }

  hasWorked(hash: string): boolean {
    return this.worked.get(hash) === true
  }

  /** Throws `rate_limited` when the address failed too often. */
  check(address: string, hash: string): void {
    const nowMs = performance.now()
    const window = this.failures.find(address, nowMs)
    if (window === undefined || window.count < failureLimit.failures || this.hasWorked(hash)) return
    throw new ApiError(
      'rate_limited',
      `This address sent ${failureLimit.failures} unknown access tokens within ${failureLimit.seconds} s.`,
      { retryAfter: secondsLeft(window, nowMs) },
    )
  }

  /** So that many that come at once are not all looked at before the first of them failed. */
  async inTurn<T>(address: string, hash: string, look: () => Promise<T>): Promise<T> {
    const end = await this.lookups.take(address)
    if (end === null)
      throw new ApiError('unavailable', 'The token could not be checked in time.', { retryAfter: 1 })
    try {
      this.check(address, hash)
      return await look()
    } finally {
      end()
    }
  }
}

/** What failures are counted by: an IPv4 address, or the /64 network of an IPv6 one, of which anybody has a whole one. */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const last = tail.split(':')
    while (groups.length + last.length < 8) groups.push('0')
    groups.push(...last)
  }
  return groups.slice(0, 4).join(':')
}
