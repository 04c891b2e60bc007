/** What is remembered for half a second, so that the store is not asked at every request. */
import { LRUCache } from 'lru-cache'

/** A revocation must be seen within a second; half of one leaves room for the request itself. */
export const keepMs = 500
const maxRemembered = 10_000

/** The answer to a question, and until when it is believed, by the monotonic clock. */
export interface Answer<T> {
  value: T
  until: number
}

/**
 * Asks once for all who want to know the same at the same time, and remembers the answer until it says, at most for `keepMs`
 * from when it was asked for. A failure is not remembered.
 */
export class ShortCache<T, Context = undefined> {
  private readonly answers: LRUCache<string, Answer<T>, Context>

  constructor(ask: (key: string, context: Context) => Promise<Answer<T>>) {
    this.answers = new LRUCache({
      ...{ max: maxRemembered, ttl: keepMs, ttlResolution: 0, ignoreFetchAbort: true },
      async fetchMethod(key: string, _stale, { context, options }) {
        const answer = await ask(key, context)
        // Without a time, it would be kept for ever.
        options.ttl = Math.max(Number.MIN_VALUE, answer.until - performance.now())
        return answer
      },
    })
  }

  /** Undefined when it has to be asked for. */
  known(key: string): Answer<T> | undefined {
    return this.answers.get(key)
  }

  find(key: string, context: Context): Promise<Answer<T>> {
    return this.answers.forceFetch(key, { context } as never)
  }
}

/** Remembers what `read` finds of an id. */
export function cacheShortly<T>(read: (id: string) => T | Promise<T>): ShortCache<T> {
  return new ShortCache<T>(async id => {
    const until = performance.now() + keepMs
    return { value: await read(id), until }
  })
}
