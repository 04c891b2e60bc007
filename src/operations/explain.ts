/** Collects everything that is stored about one invoice, and the reason for its document's state. Never writes. */
import { type Claim, noClaim, openDocumentStatuses } from '../domain/document.ts'
import { type Invoice, unsettledStatuses } from '../domain/invoice.ts'
import { deriveLink } from '../domain/link/derive-link.ts'
import type { Claimed, KnownDocument } from '../domain/link/known.ts'
import { findObstacle, isGone, isOverdue, type LinkRules } from '../domain/link/link.ts'
import { nameKey, namesIn, namesOf, referencesBy } from '../domain/link/reference.ts'
import { claimantsOf, documentsOf, paymentIds } from '../domain/link/related.ts'
import { knownSources } from '../sources/known-sources.ts'
import { billingStreams, documentStreams, isStreamOf } from '../sources/stream-names.ts'
import type { LinkedInvoice } from '../store/document-store.ts'
import type { OperatorStore, Stream } from '../store/store.ts'
import { compareLink } from './compare-with-sources.ts'

export type Explained = Awaited<ReturnType<typeof explainInvoice>>
export type Explanation = Awaited<ReturnType<typeof explainOne>>

export async function explainInvoice(
  store: OperatorStore,
  invoiceId: string,
  rules: Omit<LinkRules, 'isConnected'>,
) {
  const streams = await store.listStreams()
  const isConnected = streams.some(({ name }) => isStreamOf(knownSources.documents, name))
  const last = formatSuccesses(streams)
  const found: Explanation[] = []
  for (const linked of await store.findLinkedById(invoiceId))
    found.push(await explainOne(store, linked, { ...rules, isConnected }, last))
  const tombstone = await store.findTombstone(invoiceId)
  const [aside = null] = await store.listSetAside(1, knownSources.billing.system, { id: invoiceId })
  const isBack = found.some(({ invoice }) => invoice.customer_id === tombstone?.customer_id)
  const isDeleted = tombstone !== null && !isBack
  const deleted = isDeleted ? { ...tombstone, journal: await store.readJournal(tombstone) } : null
  return { found, aside, deleted }
}

async function explainOne(
  store: OperatorStore,
  linked: LinkedInvoice,
  rules: LinkRules,
  last: LastSuccesses,
) {
  const invoice = JSON.parse(linked.summary) as Invoice
  const { claim, observed_stamp, client_tax_id } = linked
  const own: Claimed = { invoice, claim: claim ?? noClaim, payments: paymentIds(linked.payment) }
  const wanted = documentsOf([own], rules)
  const tied = linked.document === null ? [] : [linked.document.id]
  const documents = await store.findDocuments({ ...wanted, ids: [...wanted.ids, ...tied] })
  const claimants = await store.findClaimants(claimantsOf(documents, rules))
  const derived = claim && deriveLink(own, documents, rules, Date.now(), claimants)
  return {
    invoice,
    observed_stamp,
    claim,
    /** For each template, the references by which a document would be found. */
    references: rules.references.map(template => ({
      template: template.text,
      texts: referencesBy(template, namesOf(own)),
    })),
    /** Documents that the claim names, that are tied to the invoice or that refer to it, ordered by id. */
    documents,
    /** For each of `documents`, the names of the invoice that the document contains. */
    names: documents.map(known => describeNames(known, own, claimants, rules)),
    client_tax_id,
    /** The link as the current rules derive it from the stored records. Null without a claim. */
    derived,
    isStale: derived !== null && compareLink(invoice, derived.fields).length > 0,
    journal: await store.readJournal(invoice),
    next: claim === null ? [] : describeNext(invoice, claim, documents, rules, last),
  }
}

/**
 * Returns the invoice's names that the document contains. `obstacle` says why the document does not belong to the invoice in spite of the
 * names.
 */
function describeNames(known: KnownDocument, own: Claimed, claimants: readonly Claimed[], rules: LinkRules) {
  const mine = new Set(namesOf(own).map(nameKey))
  const names = known.document === null ? [] : namesIn(known.document, rules.references)
  return {
    names: names.filter(name => mine.has(nameKey(name))),
    obstacle: findObstacle(known, own.invoice, [own, ...claimants], rules),
  }
}

type LastSuccesses = ReturnType<typeof formatSuccesses>

function formatSuccesses(streams: readonly Stream[]) {
  const names = { ...billingStreams(knownSources.billing), ...documentStreams(knownSources.documents) }
  const texts = Object.entries(names).map(([key, name]) => {
    const at = streams.find(stream => stream.name === name)?.succeeded_at ?? null
    return [key, `${name}, last success ${at === null ? 'never' : new Date(at).toISOString()}`]
  })
  return Object.fromEntries(texts) as typeof names
}

function describeNext(
  { status, ix_id }: Invoice,
  claim: Claim,
  documents: readonly KnownDocument[],
  { creatingTimeoutMs, isConnected }: LinkRules,
  last: LastSuccesses,
): string[] {
  const unsettled: readonly string[] = unsettledStatuses
  const alsoWith = `${unsettled.slice(0, -1).join(', ')} and ${unsettled.at(-1)}`
  const withOthers = unsettled.includes(status)
    ? `, and with each list of ${alsoWith} invoices (${last.unsettled})`
    : ''
  const next = [`The invoice is read again when an event reports it (${last.events})${withOthers}.`]
  if (!isConnected) return [...next, 'No documents are read, because no invoicing system was ever connected.']
  const wanted = ix_id ?? claim.ix_id
  const known = documents.find(({ id }) => id === wanted)
  const open: readonly string[] = openDocumentStatuses
  if (wanted === null)
    next.push(`A document is found when it names the invoice (${last.recent}; ${last.all}).`)
  else if (known === undefined || (known.misses > 0 && !isGone(known)))
    next.push(`Document ${wanted} is read in the next run of ${last.open}.`)
  else if (isGone(known)) next.push(`Document ${wanted} is gone and is not read again.`)
  else
    next.push(
      `Document ${wanted} is read again with ${open.includes(known.document?.status ?? '') ? `the documents that may change (${last.open})` : `all other documents (${last.all})`}.`,
    )
  if (
    claim.state === 'creating' &&
    claim.attempted_at !== null &&
    !isOverdue(claim, creatingTimeoutMs, Date.now())
  )
    next.push(
      `If no document is found, it is shown as failed from ${new Date(Date.parse(claim.attempted_at) + creatingTimeoutMs).toISOString()} on.`,
    )
  return next
}
