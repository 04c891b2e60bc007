/** Caches the store's answer for an id, also that there is none, for half a second. */
import { createRecentMap } from './recent-map.ts'

/** A revocation must be seen within a second; half of one leaves room for the request itself. */
export const keepMs = 500
export const maxRemembered = 10_000

/** The store's answer, and the time of its expiry in milliseconds. */
export interface Cached<T> {
  found: T | null
  until: number
}

export function createShortCache<T>(read: (id: string) => T | null | Promise<T | null>, now: () => number) {
  const known = createRecentMap<Cached<T>>({ keepMs, maxEntries: maxRemembered })
  /** Apart, so that made-up ids push no known one out. */
  const missing = createRecentMap<Cached<T>>({ keepMs, maxEntries: maxRemembered })
  const share = shareCalls<Cached<T>>()

  /** Undefined when the store has to be asked. */
  function recent(id: string): Cached<T> | undefined {
    const word = known.get(id) ?? missing.get(id)
    return word !== undefined && isRecent(word, now()) ? word : undefined
  }

  async function ask(id: string): Promise<Cached<T>> {
    const time = now()
    const found = await read(id)
    const word = { found, until: time + keepMs }
    const memory = found === null ? missing : known
    memory.set(id, word, time)
    return word
  }

  return { recent, find: async (id: string) => recent(id) ?? share(id, () => ask(id)) }
}

/** An entry that would last longer than `keepMs` comes from a clock that was set back. */
export function isRecent({ until }: { until: number }, time: number): boolean {
  return until > time && until <= time + keepMs
}

/** Calls with the same key at the same time share one promise. */
export function shareCalls<T>() {
  const underWay = new Map<string, Promise<T>>()
  return (key: string, call: () => Promise<T>): Promise<T> => {
    const answer = underWay.get(key) ?? call().finally(() => underWay.delete(key))
    underWay.set(key, answer)
    return answer
  }
}
