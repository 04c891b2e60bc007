export interface Keep {
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
export class RecentMap<Value> {
  private young = new Map<string, Value>()
  private old = new Map<string, Value>()
  private youngSince = Number.NEGATIVE_INFINITY
  private readonly keep: Keep

  constructor(keep: Keep) {
    this.keep = keep
  }

  get(key: string): Value | undefined {
    return this.young.get(key) ?? this.old.get(key)
  }

  set(key: string, value: Value, time: number): void {
    const { keepMs, maxEntries } = this.keep
    const age = time - this.youngSince
    // A clock that was set back gives a negative age.
    if (age >= keepMs || age < 0 || this.young.size >= maxEntries) {
      this.old = age >= 0 && age < 2 * keepMs ? this.young : new Map()
      this.young = new Map()
      this.youngSince = time
    }
    this.young.set(key, value)
  }
}
