/** The rate limit of tokens: a fixed window for each, counted in this process. */
import { createWindows, secondsLeft } from '../access/windows.ts'

export interface RateLimit {
  requests: number
  seconds: number
}

export interface Allowance {
  allowed: boolean
  remaining: number
  /** Seconds until the window ends and the count begins again. */
  reset: number
}

export function createRateLimiter({ requests, seconds }: RateLimit): (tokenId: string) => Allowance {
  const windows = createWindows(seconds)
  return tokenId => {
    const nowMs = performance.now()
    const window = windows.add(tokenId, nowMs)
    return {
      allowed: window.count <= requests,
      remaining: Math.max(0, requests - window.count),
      reset: secondsLeft(window, nowMs),
    }
  }
}
