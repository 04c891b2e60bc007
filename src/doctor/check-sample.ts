/** Some of the stored invoices, fetched again from both systems and compared: what is stored must be what is there. */
import { type Document, type DocumentType, noClaim } from '../document.ts'
import type { Invoice, InvoiceKey, Line } from '../invoice.ts'
import { deriveLink, type LinkRules, referenceOf, withReference } from '../linking/link.ts'
import { type BillingSource, type DocumentSource, SourceError } from '../sources.ts'
import type { KnownDocument, LinkedInvoice } from '../store/document-store.ts'
import type { OperatorStore } from '../store/store.ts'
import { compareDocument, compareInvoice, compareLines, compareLink, type Difference } from './compare.ts'
import { explain, type Reporter, within } from './findings.ts'
import { pickSample } from './pick-sample.ts'

export interface SampleOptions {
  store: OperatorStore
  payments: BillingSource
  /** Null: no invoicing system is connected, or its key is not good. */
  documents: DocumentSource | null
  rules: LinkRules
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
    const differences = await within(invoiceLimitMs, () => findDifferences(options, key))
    if (differences === null) {
      counts.imported++
      return
    }
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

/** Null for an invoice that did not come from the payment platform. */
async function findDifferences(
  { store, payments, documents, rules }: SampleOptions,
  key: InvoiceKey,
): Promise<Difference[] | null> {
  const observation = await payments.fetchInvoice(key.id, key.customer_id)
  // Read after it was asked for: what the connector applied meanwhile is no difference.
  const stored = await readStored(store, key)
  if (stored === null) return []
  const { linked, invoice, lines } = stored
  if (linked.claim === null) return null
  if (observation.map === null)
    return [{ field: 'status', stored: invoice.status, now: 'not found at Stripe' }]
  const record = observation.map(invoice)
  if ('refusal' in record)
    return [{ field: 'status', stored: invoice.status, now: `none of ours: ${record.refusal}` }]
  const claim = record.claim ?? noClaim
  const known = await readKnown(store, linked, referenceOf(key.id, rules))
  const wanted = new Map<number, DocumentType | null>()
  if (claim.ix_id !== null) wanted.set(claim.ix_id, claim.ix_type)
  for (const { id, document } of known) wanted.set(id, document?.type ?? wanted.get(id) ?? null)
  const answers = documents === null ? null : await fetchEach(documents, wanted, rules)
  const fresh = answers === null ? known : applyAnswers(known, answers)
  const link = deriveLink(record.invoice, claim, fresh, rules, Date.now())
  return [
    ...compareInvoice(invoice, record.invoice),
    ...compareLines(lines, record.lines),
    ...known.flatMap(({ id, document, misses }) => {
      const now = answers?.get(id)
      // One that was missed is on its way out, and is followed already.
      if (now === undefined || (now === null && misses > 0)) return []
      return compareDocument(id, misses > 0 ? null : document, now)
    }),
    ...compareLink(invoice, link.fields),
  ]
}

async function readStored(
  store: OperatorStore,
  { customer_id, id }: InvoiceKey,
): Promise<{ linked: LinkedInvoice; invoice: Invoice; lines: Line[] | null } | null> {
  const found = await store.findLinkedById(id)
  const linked = found.find(other => other.customer_id === customer_id)
  if (linked === undefined) return null
  // The id without its last character comes before it, and all but a few others before that.
  const records = await store.readInvoices({ customer_id, id: id.slice(0, -1) }, 100)
  const lines = records.find(other => other.id === id)?.lines ?? null
  return { linked, invoice: JSON.parse(linked.summary), lines: lines === null ? null : JSON.parse(lines) }
}

/** What is stored of the documents that it is tied to, claims, or is referred to by. */
async function readKnown(
  store: OperatorStore,
  { document }: LinkedInvoice,
  reference: string,
): Promise<KnownDocument[]> {
  const all = [...(document === null ? [] : [document]), ...(await store.findReferenced(reference))]
  return [...new Map(all.map(known => [known.id, known])).values()]
}

/** Null for one that is not there. */
async function fetchEach(
  documents: DocumentSource,
  wanted: ReadonlyMap<number, DocumentType | null>,
  rules: LinkRules,
): Promise<Map<number, Document | null>> {
  const answers = new Map<number, Document | null>()
  for (const [id, type] of wanted) {
    const document = await documents.fetchDocument(id, type)
    answers.set(id, document && withReference(document, rules))
  }
  return answers
}

/** That one is not there changes nothing by itself: only when it was missed twice is it believed. */
function applyAnswers(
  known: readonly KnownDocument[],
  answers: ReadonlyMap<number, Document | null>,
): KnownDocument[] {
  const byId = new Map(known.map(each => [each.id, each]))
  return [...answers].map(([id, document]) =>
    document === null
      ? (byId.get(id) ?? { id, document, misses: 1, observed_at: 0 })
      : { id, document, misses: 0, observed_at: 0 },
  )
}
