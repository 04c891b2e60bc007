import type { InvoiceKey } from '../invoice.ts'
import { SourceError } from '../sources.ts'
import type { OperatorStore } from '../store/store.ts'
import { type Compared, compareWithSources } from './compare-with-sources.ts'
import { explain, type Report, within } from './findings.ts'

export interface SampleOptions extends Compared {
  store: Compared['store'] & Pick<OperatorStore, 'readAtPoints'>
  count: number
}

const invoiceLimitMs = 15_000
const sampleLimitMs = 60_000
/** A system that fails so often does not work: the rest would only take time. */
const failuresAtMost = 2

const next =
  'Run fatura sync --once --full, which lists everything again, then run this again: an invoice that changed in the last minute may differ. If a difference stays, please report it as a bug.'

export async function checkSample(report: Report, options: SampleOptions): Promise<void> {
  const sample = report('Sample')
  let [compared, differing, imported, failures] = [0, 0, 0, 0]
  const keys = await sample.attempt('Look at the database first.', () =>
    pickSample(options.store, options.count),
  )
  if (keys === null) return
  if (keys.length === 0) return sample.skip('there are no invoices in the store')
  const until = Date.now() + sampleLimitMs
  for (const [place, key] of keys.entries()) {
    if (failures >= failuresAtMost || Date.now() > until) break
    report(`Sample ${place + 1} of ${keys.length}`).begin()
    const invoice = report(`Sample: ${key.id}`)
    try {
      const comparison = await within(invoiceLimitMs, () => compareWithSources(options, key))
      if (comparison === null) imported++
      else compared++
      if (comparison !== null && comparison.differences.length > 0) differing++
      for (const { field, stored, now } of comparison?.differences ?? [])
        invoice.fail(`${field}: ${stored} → ${now}`, next)
    } catch (error) {
      failures += error instanceof SourceError ? 1 : failuresAtMost
      invoice.fail(explain(error), 'Try again.')
    }
  }
  const left = imported === 0 ? '' : `; ${imported} did not come from Stripe and were left out`
  const where = options.documents === null ? 'Stripe alone' : 'both systems'
  const what = `${compared} of ${keys.length} sampled invoices compared with ${where}`
  if (compared === 0) sample.skip(`nothing could be compared${left}`)
  else if (differing === 0) sample.ok(`${what}: no difference${left}`)
  else sample.warn(`${what}: ${differing} differ${differing === 1 ? 's' : ''}${left}`, next)
}

/** Points of the table for each wanted invoice: on PostgreSQL, an invoice lies at one in thirty, or in seventy where they are long. */
const pointsEach = 100

/** Up to `count` keys, evenly from the whole table; the same ones every time until it changes. */
export async function pickSample(
  store: Pick<OperatorStore, 'readLinked' | 'readAtPoints'>,
  count: number,
): Promise<InvoiceKey[]> {
  const first = await store.readLinked(null, count + 1, null)
  if (first.length <= count) return first
  const points = count * pointsEach
  const found = await store.readAtPoints(Array.from({ length: points }, (_, i) => (i + 0.5) / points))
  const some = Math.min(count, found.length)
  return Array.from({ length: some }, (_, i) => found[Math.floor((i * found.length) / some)] as InvoiceKey)
}
