/** The rate limit of tokens: a fixed window for each, counted in this process. */
import { createWindows, secondsLeft } from '../access/windows.ts'

export interface RateLimit {
  requests: number
  seconds: number
}

export function createRateLimiter({ requests, seconds }: RateLimit) {
  const windows = createWindows(seconds)
  return (tokenId: string) => {
    const nowMs = performance.now()
    const window = windows.add(tokenId, nowMs)
    return {
      allowed: window.count <= requests,
      remaining: Math.max(0, requests - window.count),
      /** Seconds until the window ends and the count begins again. */
      reset: secondsLeft(window, nowMs),
    }
  }
}
