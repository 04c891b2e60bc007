/** Caches the store's answer for an id, also that there is none, for half a second. */
import { RecentMap } from './recent-map.ts'

/** A revocation must be seen within a second; half of one leaves room for the request itself. */
export const keepMs = 500
export const maxRemembered = 10_000

/** The store's answer, and the time of its expiry in milliseconds. */
export interface Cached<T> {
  found: T | null
  until: number
}

export class ShortCache<T> {
  private readonly known = new RecentMap<Cached<T>>({ keepMs, maxEntries: maxRemembered })
  /** Apart, so that made-up ids push no known one out. */
  private readonly missing = new RecentMap<Cached<T>>({ keepMs, maxEntries: maxRemembered })
  private readonly questions = new SingleFlight<Cached<T>>()
  private readonly read: (id: string) => T | null | Promise<T | null>
  private readonly now: () => number

  constructor(read: (id: string) => T | null | Promise<T | null>, now: () => number) {
    this.read = read
    this.now = now
  }

  /** Undefined when the store has to be asked. */
  recent(id: string): Cached<T> | undefined {
    const word = this.known.get(id) ?? this.missing.get(id)
    return word !== undefined && isRecent(word, this.now()) ? word : undefined
  }

  async find(id: string): Promise<Cached<T>> {
    return this.recent(id) ?? this.questions.ask(id, () => this.askNow(id))
  }

  private async askNow(id: string): Promise<Cached<T>> {
    const time = this.now()
    const found = await this.read(id)
    const word = { found, until: time + keepMs }
    const memory = found === null ? this.missing : this.known
    memory.set(id, word, time)
    return word
  }
}

/** An entry that would last longer than `keepMs` comes from a clock that was set back. */
export function isRecent({ until }: { until: number }, time: number): boolean {
  return until > time && until <= time + keepMs
}

/** Calls with the same key at the same time share one promise. */
export class SingleFlight<T> {
  private readonly asking = new Map<string, Promise<T>>()

  ask(question: string, find: () => Promise<T>): Promise<T> {
    let answer = this.asking.get(question)
    if (answer === undefined) {
      answer = find().finally(() => this.asking.delete(question))
      this.asking.set(question, answer)
    }
    return answer
  }
}
