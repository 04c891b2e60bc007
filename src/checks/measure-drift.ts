/** Drift of the store: every minute a few stored invoices are compared with both systems, and a few listed ones are looked for. Wrong at two looks: counted and repaired. */
import type { InvoiceKey } from '../invoice.ts'
import { hourOf, keptHours } from '../metrics/drift-estimate.ts'
import { type BillingSource, type Observation, SourceError } from '../sources.ts'
import type { DocumentKey } from '../store/document-store.ts'
import type { WriteStore } from '../store/store.ts'
import { type Compared, compareWithSources } from './compare-with-sources.ts'

/** Interval of the rounds, and the number of stored invoices that each compares. */
export const driftEveryMs = 60_000
const perRound = 3
/** Points of the table that are looked at for them: on PostgreSQL, an invoice lies at one in thirty. */
const pointsPerRound = 256

/** Pause before the second look: a change takes some seconds to arrive. */
const secondLookMs = 60_000

export interface DriftOptions extends Compared {
  store: Compared['store'] & Pick<WriteStore, 'transaction' | 'readAtPoints' | 'findTied'>
  payments: Pick<BillingSource, 'fetchInvoice' | 'listInvoices'>
  /** Called with an invoice that is wrong at a second look too. */
  onDifference(key: InvoiceKey, fields: readonly string[]): void
  /** Brings an invoice and its documents up to date, as the connector does with any. */
  repair(key: InvoiceKey, documents: readonly DocumentKey[]): Promise<unknown>
  /** Brings the invoices near another up to date; resolves with the number of changed ones. */
  repairNear(customerId: string, created: number | null): Promise<number>
  /** Resolves after these milliseconds; rejects when the connector ends. */
  wait(milliseconds: number): Promise<void>
  random?: () => number
  now?: () => number
}

/** What is wrong with an invoice; null when nothing is. */
type Look = (
  key: InvoiceKey,
) => Promise<{ fields: string[]; documents: DocumentKey[]; created: number | null } | null>

export function createDriftMeasure(options: DriftOptions): () => Promise<void> {
  const { store, payments, onDifference, repair, repairNear, wait, random = Math.random } = options
  const now = options.now ?? Date.now
  /** Lower bound for the first creation at the platform, in seconds of its clock. */
  let first = 0

  async function draw(): Promise<InvoiceKey[]> {
    const keys = await store.readAtPoints(Array.from({ length: pointsPerRound }, random))
    const drawn = (await inStore(keys, true)).map(key => ({ key, place: random() }))
    return drawn
      .sort((a, b) => a.place - b.place)
      .map(({ key }) => key)
      .slice(0, perRound)
  }

  /** The keys that came, or did not come, into the store from the platform. */
  async function inStore<Key extends InvoiceKey>(keys: readonly Key[], isThere: boolean): Promise<Key[]> {
    const { invoices } = await store.findTied({ documents: [], invoices: keys.map(({ id }) => id) })
    const known = new Set(invoices)
    return keys.filter(({ id }) => known.has(id) === isThere)
  }

  async function list(): Promise<InvoiceKey[]> {
    const until = Math.floor(now() / 1_000)
    const before = first + 1 + Math.floor(random() * Math.max(1, until - first))
    const page = await payments.listInvoices(null, { before }, 'slowly')
    if (page.next === null) {
      const isEmpty = page.observations.length + page.unfit.length === 0
      first = Math.max(first, isEmpty ? before : page.reached)
    }
    return page.observations.flatMap(ours)
  }

  const compare: Look = async key => {
    const found = await compareWithSources(options, key, 'slowly')
    if (found === null || found.differences.length === 0) return null
    return { ...found, fields: found.differences.map(({ field }) => field) }
  }

  const miss: Look = async key => {
    const observation = await payments.fetchInvoice(key.id, key.customer_id, 'slowly')
    // Read after the fetch: an invoice that the connector applied meanwhile is not missing.
    const [missing] = await inStore(ours(observation), false)
    return missing === undefined
      ? null
      : { fields: ['missing'], documents: [], created: observation.created ?? null }
  }

  /** False when it is right. */
  async function examine(key: InvoiceKey, look: Look) {
    if ((await look(key)) === null) return false
    await wait(secondLookMs)
    const wrong = await look(key)
    if (wrong === null) return false
    onDifference(key, wrong.fields)
    const stillWrong = repair(key, wrong.documents).then(() => look(key))
    return { key, created: wrong.created, isRepaired: (await unlessFailed(stillWrong, wrong)) === null }
  }

  return async () => {
    const listed = await unlessFailed(list(), [])
    const absent = await inStore(listed, false)
    // Null for one that cannot be compared.
    const [compared, looked] = await Promise.all([
      Promise.all((await draw()).map(key => unlessFailed(examine(key, compare), null))),
      Promise.all(absent.map(key => unlessFailed(examine(key, miss), null))),
    ])
    const differing = compared.filter(each => each !== null && each !== false)
    const missing = looked.filter(each => each !== null && each !== false)
    const [near] = [...differing, ...missing]
    const neighbours = near ? await unlessFailed(repairNear(near.key.customer_id, near.created), 0) : 0
    const hour = hourOf(now())
    const drift = {
      compared: compared.filter(each => each !== null).length,
      differing: differing.length,
      listed: listed.length - looked.filter(each => each === null).length,
      missing: missing.length,
      repaired: [...differing, ...missing].filter(({ isRepaired }) => isRepaired).length,
      neighbours,
    }
    await store.transaction(tx => tx.addDrift(hour, drift, hour - keptHours))
  }
}

/** The key of an invoice that belongs in the store; none when it is gone, or not stored on purpose. */
function ours({ id, customer_id, map }: Observation): InvoiceKey[] {
  const isOurs = customer_id !== null && map !== null && !('refusal' in map(null))
  return isOurs ? [{ customer_id, id }] : []
}

/** A source that does not answer is no difference. */
function unlessFailed<T, Other>(work: Promise<T>, otherwise: Other): Promise<T | Other> {
  return work.catch(error => {
    if (error instanceof SourceError) return otherwise
    throw error
  })
}
