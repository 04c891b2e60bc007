/**
 * Bounds the cost of tokens that were not verified yet. Each token waits in a fair queue for its check. Only failed
 * checks are counted.
 */
import { isIPv6 } from 'node:net'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../domain/errors.ts'
import { createFairQueue } from './fair-queue.ts'
import { createWindows, remainingSeconds } from './windows.ts'

/** Wrong tokens that one address may send within the window. Further wrong tokens are answered with `rate_limited`. */
const failureLimit = { failures: 100, seconds: 10 }

/**
 * Limits of token checks. Addresses are served in turn, and so are the keys or token ids that one address names. A
 * signature takes about 0.3 ms of CPU. Many good tokens at once, for example after a restart, wait and are not
 * refused.
 */
const checkLimits = { perGroup: 20, inAll: 200, inAllSecond: 2_000, waitingPerGroup: 1_000, waitMs: 1_000 }

export function createLookupGuard() {
  const failures = createWindows(failureLimit.seconds)
  /** Hashes of tokens that were valid. Such tokens do not queue. */
  const succeeded = new LRUCache<string, true>({ ttl: 60 * 60 * 1000, max: 100_000, ttlResolution: 0 })
  const takeSlot = createFairQueue(
    checkLimits,
    () => new ApiError('unavailable', 'The token could not be checked in time.', { retryAfter: 1 }),
  )
  return {
    recordSuccess: (hash: string) => succeeded.set(hash, true),
    /** `name` is the id of the token or of its key, as read from the token. */
    async withSlot<T>(address: string, name: string, hash: string, check: () => Promise<T>): Promise<T> {
      if (succeeded.get(hash) === true) return check()
      const end = await takeSlot(address, name)
      try {
        return await check()
      } finally {
        end()
      }
    },
    /** Counts a wrong token. Throws `rate_limited` when its address sent too many. */
    recordFailure(address: string): void {
      const nowMs = performance.now()
      const window = failures.add(address, nowMs)
      if (window.count <= failureLimit.failures) return
      throw new ApiError(
        'rate_limited',
        `This address sent ${failureLimit.failures} unknown access tokens within ${failureLimit.seconds} s.`,
        { retryAfter: remainingSeconds(window, nowMs) },
      )
    },
  }
}

/**
 * The address by which failures are counted: an IPv4 address, or the /64 network of an IPv6 address, because every
 * client has a whole /64.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [first = [], last = []] = address.split('::').map(part => (part === '' ? [] : part.split(':')))
  const between = Array(8 - first.length - last.length).fill('0')
  return [...first, ...between, ...last].slice(0, 4).join(':')
}
