/** An estimate for the whole store from the invoices that were compared with their sources. */
import type { ConnectorReads, Drift } from '../store/connector-store.ts'

const hourMs = 60 * 60_000

/** Retention of comparisons. */
export const keptHours = 7 * 24

export function hourOf(moment: number): number {
  return Math.floor(moment / hourMs)
}

export type DriftEstimates = Awaited<ReturnType<typeof readDrift>>

/** A day for a close bound; this hour and the one before for recent changes. */
export async function readDrift(store: Pick<ConnectorReads, 'readDrift'>, now = Date.now()) {
  const read = async (hours: number) => {
    const drift = await store.readDrift(hourOf(now) - hours + 1)
    return { ...drift, ...estimate(drift) }
  }
  return { '24h': await read(24), '2h': await read(2) }
}

/** The share of the compared invoices that differ; with 95 % confidence, no larger one of all does. Null before any was compared. */
export function estimate({ compared, differing }: Pick<Drift, 'compared' | 'differing'>) {
  if (compared === 0) return { ratio: null, ratio_at_most: null }
  return { ratio: differing / compared, ratio_at_most: upperBound(compared, differing) }
}

const doubt = 0.05
/** Enough for twelve digits. */
const halvings = 40

/** Upper end of Clopper and Pearson's one-sided interval: holds for any share and number of comparisons. */
function upperBound(n: number, k: number): number {
  if (k >= n) return 1
  let [low, high] = [k / n, 1]
  for (let halved = 0; halved < halvings; halved++) {
    const middle = (low + high) / 2
    if (chanceOfAtMost(k, n, middle) > doubt) low = middle
    else high = middle
  }
  return high
}

/** Cumulative binomial distribution. In logarithms, since single terms may be smaller than any number. */
function chanceOfAtMost(k: number, n: number, share: number): number {
  const odds = Math.log(share) - Math.log1p(-share)
  let term = n * Math.log1p(-share)
  let sum = Math.exp(term)
  for (let i = 1; i <= k; i++) {
    term += Math.log((n - i + 1) / i) + odds
    sum += Math.exp(term)
  }
  return sum
}
