/**
 * How wrong the store is, as a figure: every minute a few stored invoices are fetched again from both systems and compared.
 * The whole store is walked in about a day, and of every stretch of it some invoices are picked at random: so each
 * invoice has the same chance, and no part of the store is left out.
 */
import { type Compared, findDifferences } from '../doctor/find-differences.ts'
import type { InvoiceKey } from '../invoice.ts'
import { SourceError } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import { hourOf, keptHours } from './estimate.ts'

/** How often a stretch is walked, and how many of its invoices are compared. */
export const driftEvery = 60_000
const perStretch = 3
const stretchesARound = (24 * 60 * 60_000) / driftEvery

/** Before the first round is over, nobody knows how long a stretch should be. */
const firstStretch = 200
const longestStretch = 10_000

/** A change takes some seconds to arrive: what differs is looked at once more, so long after. */
const secondLookMs = 60_000

export interface DriftOptions extends Compared {
  store: Compared['store'] & Pick<WriteStore, 'transaction'>
  /** Told of an invoice that differs at a second look too. */
  onDifference(key: InvoiceKey, fields: readonly string[]): void
  /** Resolves after these milliseconds; rejects when the connector ends. */
  wait(milliseconds: number): Promise<void>
  random?: () => number
  now?: () => number
}

/** Compares the next few invoices of the store. Resolves with nothing: what it finds is in the store. */
export type MeasureDrift = () => Promise<void>

export function createDriftMeasure(options: DriftOptions): MeasureDrift {
  const { store, onDifference, wait, random = Math.random, now = Date.now } = options
  let after: InvoiceKey | null = null
  let walked = 0
  let stretch = firstStretch

  async function nextStretch(): Promise<InvoiceKey[]> {
    const keys = await store.readLinked(after, stretch, null)
    walked += keys.length
    after = keys.at(-1) ?? null
    if (keys.length < stretch) {
      stretch = Math.min(longestStretch, Math.max(perStretch, Math.ceil(walked / stretchesARound)))
      after = null
      walked = 0
    }
    return keys
  }

  /** Null when it cannot be compared: it did not come from a source, or the source does not answer. */
  async function differs(key: InvoiceKey): Promise<boolean | null> {
    try {
      const first = await findDifferences(options, key, 'slowly')
      if (first === null) return null
      if (first.length === 0) return false
      await wait(secondLookMs)
      const second = await findDifferences(options, key, 'slowly')
      if (second === null) return null
      if (second.length === 0) return false
      onDifference(
        key,
        second.map(({ field }) => field),
      )
      return true
    } catch (error) {
      if (error instanceof SourceError) return null
      throw error
    }
  }

  return async () => {
    const keys = pick(await nextStretch(), perStretch, random)
    const found = await Promise.all(keys.map(differs))
    const compared = found.filter(each => each !== null).length
    if (compared === 0) return
    const hour = hourOf(now())
    const drift = { compared, differing: found.filter(each => each === true).length }
    await store.transaction(tx => tx.addDrift(hour, drift, hour - keptHours))
  }
}

/** Up to `count` of them, each with the same chance. */
function pick<T>(items: readonly T[], count: number, random: () => number): T[] {
  const left = [...items]
  const picked: T[] = []
  while (picked.length < count && left.length > 0) {
    const place = Math.floor(random() * left.length)
    picked.push(left[place] as T)
    left[place] = left.at(-1) as T
    left.pop()
  }
  return picked
}
