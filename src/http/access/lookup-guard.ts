/** Bounds the cost of tokens that have not proven right yet: each is checked, but in turn. Only failures are counted. */
import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../domain/errors.ts'
import { createFairQueue } from './fair-queue.ts'
import { createWindows, secondsLeft } from './windows.ts'

/** Wrong tokens of one address that are answered as such within the window. */
const failureLimit = { failures: 100, seconds: 10 }

/**
 * Checks in a circle of addresses, and of the keys or token ids that an address names. A signature takes some 0.3 ms of CPU.
 * Good tokens that come together, as after a restart, wait for each other and are not refused.
 */
const checkLimits = { perGroup: 20, inAll: 200, inAllSecond: 2_000, waitingPerGroup: 1_000, waitMs: 1_000 }

export function createLookupGuard() {
  const failures = createWindows(failureLimit.seconds)
  /** These do not queue. */
  const succeeded = new LRUCache<string, true>({ ttl: 60 * 60 * 1000, max: 100_000, ttlResolution: 0 })
  const takeSlot = createFairQueue(
    checkLimits,
    () => new ApiError('unavailable', 'The token could not be checked in time.', { retryAfter: 1 }),
  )
  return {
    noteSuccess: (hash: string) => succeeded.set(hash, true),
    /** `name` is the key's or the token's own, as the token gives it. */
    async inTurn<T>(address: string, name: string, hash: string, check: () => Promise<T>): Promise<T> {
      if (succeeded.get(hash) === true) return check()
      const end = await takeSlot(address, name)
      try {
        return await check()
      } finally {
        end()
      }
    },
    /** Counts a wrong token. Throws `rate_limited` when its address sent too many. */
    noteFailure(address: string): void {
      const nowMs = performance.now()
      const window = failures.add(address, nowMs)
      if (window.count <= failureLimit.failures) return
      throw new ApiError(
        'rate_limited',
        `This address sent ${failureLimit.failures} unknown access tokens within ${failureLimit.seconds} s.`,
        { retryAfter: secondsLeft(window, nowMs) },
      )
    },
  }
}

/** The key of the count: an IPv4 address, or the /64 network of an IPv6 one, since anybody has a whole one. */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [first = [], last = []] = address.split('::').map(part => (part === '' ? [] : part.split(':')))
  const between = Array(8 - first.length - last.length).fill('0')
  return [...first, ...between, ...last].slice(0, 4).join(':')
}
