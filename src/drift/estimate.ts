/** What the comparisons say of the whole store. */
import type { ConnectorReads, Drift } from '../store/connector-store.ts'

const hourMs = 60 * 60_000

/** For how long comparisons count, and for how long they are kept. */
const windowHours = 24
export const keptHours = 7 * windowHours

export interface DriftEstimate extends Drift {
  /** The share of the compared invoices that differ; null before any was compared. */
  ratio: number | null
  /** With 95 % confidence, no larger share of all invoices differs; null before any was compared. */
  ratio_at_most: number | null
}

export function hourOf(moment: number): number {
  return Math.floor(moment / hourMs)
}

/** Of the last 24 hours. */
export async function readDrift(
  store: Pick<ConnectorReads, 'readDrift'>,
  now = Date.now(),
): Promise<DriftEstimate> {
  return estimate(await store.readDrift(hourOf(now) - windowHours + 1))
}

export function estimate({ compared, differing }: Drift): DriftEstimate {
  if (compared === 0) return { compared, differing, ratio: null, ratio_at_most: null }
  return { compared, differing, ratio: differing / compared, ratio_at_most: upperBound(compared, differing) }
}

/** Of the normal distribution: 5 % lie above it. */
const z = 1.6449

/** The upper end of Wilson's interval, one-sided: it holds for few comparisons and for no difference at all. */
function upperBound(n: number, k: number): number {
  const p = k / n
  const middle = p + (z * z) / (2 * n)
  const half = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))
  return Math.min(1, (middle + half) / (1 + (z * z) / n))
}
