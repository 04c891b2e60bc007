/** How many requests one token may send: a fixed window per token, counted in this process. */

export interface RateLimit {
  requests: number
  seconds: number
}

export interface Allowance {
  allowed: boolean
  remaining: number
  /** Seconds until the window ends and the count begins anew. */
  reset: number
}

/** Windows of tokens that fell silent are dropped once so many are held. */
const heldAtMost = 10_000

export function createRateLimiter(
  { requests, seconds }: RateLimit,
  now: () => number = Date.now,
): (tokenId: string) => Allowance {
  const windows = new Map<string, { count: number; ends: number }>()

  return tokenId => {
    const time = now()
    let window = windows.get(tokenId)
    // A window that would last longer than one does comes from a clock that was set back.
    if (window === undefined || window.ends <= time || window.ends > time + seconds * 1000) {
      if (windows.size >= heldAtMost)
        for (const [id, { ends }] of windows) if (ends <= time) windows.delete(id)
      window = { count: 0, ends: time + seconds * 1000 }
      windows.set(tokenId, window)
    }
    window.count++
    return {
      allowed: window.count <= requests,
      remaining: Math.max(0, requests - window.count),
      reset: Math.ceil((window.ends - time) / 1000),
    }
  }
}
