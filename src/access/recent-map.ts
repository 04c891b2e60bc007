interface Keep {
  /** Time for which an entry is kept at least, from when it was set; it is kept for less than twice as long. */
  keepMs: number
  /** Maximum of entries that come within `keepMs`. When more come, the oldest are forgotten earlier. */
  maxEntries: number
}

/**
 * A map that forgets by itself. It has two halves: new entries go into the young one, and from time to time the young half
 * becomes the old one, whose entries are let go of all at once. So every call takes constant time, however many entries
 * there are, and at most `2 * maxEntries` of them are held. Times are in milliseconds, of any clock.
 */
export function createRecentMap<Value>({ keepMs, maxEntries }: Keep) {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  let youngSince = Number.NEGATIVE_INFINITY
  return {
    get: (key: string) => young.get(key) ?? old.get(key),
    set(key: string, value: Value, time: number): void {
      const age = time - youngSince
      // A clock that was set back gives a negative age.
      if (age >= keepMs || age < 0 || young.size >= maxEntries) {
        old = age >= 0 && age < 2 * keepMs ? young : new Map()
        young = new Map()
        youngSince = time
      }
      young.set(key, value)
    },
  }
}
