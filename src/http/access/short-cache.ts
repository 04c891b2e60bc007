/** Remembers answers for half a second, so that the store is not asked at every request. */
import { LRUCache } from 'lru-cache'

/** A revocation must take effect within a second. Half a second leaves time for the request itself. */
export const keepMs = 500
const maxRemembered = 10_000

/** An answer, and the time until which it is valid by the monotonic clock. */
export interface Answer<T> {
  value: T
  until: number
}

/**
 * Calls `ask` once for all callers that want the same answer at the same time. An answer is remembered until the time
 * in its `until`. Failures are not remembered.
 */
export class ShortCache<T, Context = undefined> {
  private readonly answers: LRUCache<string, Answer<T>, Context>

  constructor(ask: (key: string, context: Context) => Promise<Answer<T>>) {
    this.answers = new LRUCache({
      ...{ max: maxRemembered, ttl: keepMs, ttlResolution: 0, ignoreFetchAbort: true },
      async fetchMethod(key: string, _stale, { context, options }) {
        const answer = await ask(key, context)
        // With a `ttl` of 0, the answer would be kept for ever.
        options.ttl = Math.max(Number.MIN_VALUE, answer.until - performance.now())
        return answer
      },
    })
  }

  /** Undefined when the answer is not remembered. */
  known(key: string): Answer<T> | undefined {
    return this.answers.get(key)
  }

  find(key: string, context: Context): Promise<Answer<T>> {
    return this.answers.forceFetch(key, { context } as never)
  }
}

export function cacheShortly<T>(read: (id: string) => T | Promise<T>): ShortCache<T> {
  return new ShortCache<T>(async id => {
    const until = performance.now() + keepMs
    return { value: await read(id), until }
  })
}
