/** Some of the stored invoices, fetched again from both systems and compared: what is stored must be what is there. */
import type { InvoiceKey } from '../invoice.ts'
import { SourceError } from '../sources.ts'
import { type Compared, findDifferences } from './find-differences.ts'
import { explain, type Reporter, within } from './findings.ts'
import { pickSample } from './pick-sample.ts'

export interface SampleOptions extends Compared {
  count: number
}

/** In milliseconds: for one invoice, and for the whole sample. */
const invoiceLimitMs = 15_000
const sampleLimitMs = 60_000
/** A system that fails so often does not work: the rest would only take time. */
const failuresAtMost = 2

const check = 'Sample'
const next =
  'Run fatura sync --once --full, which lists everything again, then run this again: an invoice that changed in the last minute may differ. If a difference stays, please report it as a bug.'

export async function checkSample(report: Reporter, options: SampleOptions): Promise<void> {
  const { store, count } = options
  report.begin(check)
  const counts: Counts = { picked: 0, compared: 0, differing: 0, imported: 0, failures: 0 }
  const until = Date.now() + sampleLimitMs
  try {
    const keys = await pickSample((after, limit) => store.readLinked(after, limit, null), count)
    counts.picked = keys.length
    if (keys.length === 0) return report.skip(check, 'there are no invoices in the store')
    for (const [place, key] of keys.entries()) {
      report.begin(`${check} ${place + 1} of ${keys.length}`)
      await compareOne(report, options, key, counts)
      if (counts.failures >= failuresAtMost || Date.now() > until) break
    }
  } catch (error) {
    return report.fail(check, explain(error), 'Look at the database first.')
  }
  summarize(report, counts, options.documents !== null)
}

interface Counts {
  picked: number
  compared: number
  differing: number
  imported: number
  failures: number
}

async function compareOne(
  report: Reporter,
  options: SampleOptions,
  key: InvoiceKey,
  counts: Counts,
): Promise<void> {
  try {
    const comparison = await within(invoiceLimitMs, () => findDifferences(options, key))
    if (comparison === null) {
      counts.imported++
      return
    }
    const { differences } = comparison
    counts.compared++
    if (differences.length > 0) counts.differing++
    for (const { field, stored, now } of differences)
      report.fail(`${check}: ${key.id}`, `${field}: ${stored} → ${now}`, next)
  } catch (error) {
    counts.failures += error instanceof SourceError ? 1 : failuresAtMost
    report.fail(`${check}: ${key.id}`, explain(error), 'Try again.')
  }
}

function summarize(report: Reporter, counts: Counts, hasDocuments: boolean): void {
  const { picked, compared, differing, imported } = counts
  const left = imported === 0 ? '' : `; ${imported} did not come from Stripe and were left out`
  const where = hasDocuments ? 'both systems' : 'Stripe alone'
  const what = `${compared} of ${picked} sampled invoices compared with ${where}`
  if (compared === 0) report.skip(check, `nothing could be compared${left}`)
  else if (differing === 0) report.ok(check, `${what}: no difference${left}`)
  else report.warn(check, `${what}: ${differing} differ${differing === 1 ? 's' : ''}${left}`, next)
}
