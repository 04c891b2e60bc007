/** Counts by key. Each count belongs to a window of time that begins with the key's first count. */
import { LRUCache } from 'lru-cache'

interface Window {
  count: number
  /** End of the window by the monotonic clock, so that setting the machine's clock does not change it. */
  endsMs: number
}

/**
 * Maximum of windows at a time. Beyond it, the least recently used windows are forgotten, and their keys are counted
 * from 0 again.
 */
const maxWindows = 100_000

/** Every `nowMs` is a value of `performance.now()`. */
export function createWindows(seconds: number) {
  const lengthMs = seconds * 1000
  const windows = new LRUCache<string, Window>({ ttl: lengthMs, max: maxWindows, ttlResolution: 0 })

  /** Returns the key's window. Undefined when there is none, or when it has ended. */
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
export function remainingSeconds({ endsMs }: Window, nowMs: number): number {
  // Rounds to milliseconds first. Otherwise an inexact difference just above 60 s would become 61.
  return Math.max(1, Math.ceil(Math.round(endsMs - nowMs) / 1000))
}
