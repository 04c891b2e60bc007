/** Counts by key, each within a window of time that begins with the key's first count. */
import { LRUCache } from 'lru-cache'

interface Window {
  count: number
  /** Its end by the monotonic clock: setting the machine's clock neither opens nor closes one. */
  endsMs: number
}

/** Maximum of windows at a time. When more begin, the oldest are forgotten: those keys are counted from 0 early. */
const maxWindows = 100_000

/** Each `nowMs` is `performance.now()`. */
export function createWindows(seconds: number) {
  const lengthMs = seconds * 1000
  const windows = new LRUCache<string, Window>({ ttl: lengthMs, max: maxWindows, ttlResolution: 0 })

  /** The key's window; undefined when there is none, or it ended. */
  function find(key: string, nowMs: number): Window | undefined {
    const window = windows.get(key)
    return window !== undefined && window.endsMs > nowMs ? window : undefined
  }

  return {
    find,
    add(key: string, nowMs: number): Window {
      let window = find(key, nowMs)
      if (window === undefined) {
        window = { count: 0, endsMs: nowMs + lengthMs }
        windows.set(key, window)
      }
      window.count++
      return window
    },
  }
}

/** Whole seconds until a window ends, for `Retry-After`. */
export function secondsLeft({ endsMs }: Window, nowMs: number): number {
  // Rounded to milliseconds first: the difference is not exact, and a hair above 60 s would become 61.
  return Math.max(1, Math.ceil(Math.round(endsMs - nowMs) / 1000))
}
