/** Reads the invoices and documents within the scope of a reconciliation, batch by batch. */
import { noClaim } from '../../domain/document.ts'
import type { Invoice } from '../../domain/invoice.ts'
import type { Claimed, KnownDocument } from '../../domain/link/known.ts'
import type { LinkRules } from '../../domain/link/link.ts'
import { claimantsOf, documentsOf, invoicesNamedBy, paymentIds, relate } from '../../domain/link/related.ts'
import type { LinkedInvoice } from '../../store/document-store.ts'
import type { OperatorStore } from '../../store/store.ts'
import { readBatches } from '../../sync/concurrency.ts'
import { judgeUnlinked, type Unlinked } from './unlinked.ts'

export interface Scope {
  customer: string | null
  /** Days in a time zone, YYYY-MM-DD, both inclusive. Null without limits. */
  days: { from: string; to: string } | null
  /** Moments of the scope: `from` is inclusive, `to` is exclusive. */
  from: number
  to: number
}

/** Yields batches of invoices, ordered by key. */
export async function* readInScope(store: OperatorStore, { customer, days, from, to }: Scope) {
  const read = (after: LinkedInvoice | null, limit: number) => store.readLinked(after, limit, customer)
  for await (const batch of readBatches(read))
    yield batch.filter(({ summary }) => {
      const moment = days === null ? 0 : Date.parse(JSON.parse(summary).issued_at)
      return moment >= from && moment < to
    })
}

/**
 * Yields each invoice with the documents that name it or that its claim names. `claimants` are all invoices that may own such a document.
 */
export async function* readChecked(store: OperatorStore, scope: Scope, rules: LinkRules) {
  for await (const batch of readInScope(store, scope)) {
    const given = batch.map(toClaimed)
    const documents = batch.length === 0 ? [] : await store.findDocuments(documentsOf(given, rules))
    const related = relate(documents, await store.findClaimants(claimantsOf(documents, rules)), rules)
    const byId = new Map(documents.map(known => [known.id, known]))
    for (const [i, own] of given.entries()) {
      const linked = batch[i] as LinkedInvoice
      const known = [...new Set([...related.naming(own), ...[byId.get(own.claim.ix_id ?? 0) ?? []].flat()])]
      // An invoice of another source, such as an imported one, has no claim and owns no document.
      const claimants = [...(linked.claim === null ? [] : [own]), ...known.flatMap(related.claimants)]
      yield { linked, known, claimants }
    }
  }
}

function toClaimed({ summary, claim, payment }: LinkedInvoice): Claimed {
  return { invoice: JSON.parse(summary) as Invoice, claim: claim ?? noClaim, payments: paymentIds(payment) }
}

/**
 * Yields documents in force that are not tied to an invoice. Yields none for a single customer, because a document does not name a
 * customer.
 */
export async function* readUnlinked(store: OperatorStore, { customer, days }: Scope, rules: LinkRules) {
  if (customer !== null) return
  const read = (after: KnownDocument | null, limit: number) => store.readInForce(after?.id ?? 0, limit, days)
  for await (const batch of readBatches(read)) {
    const unlinked = await findUnlinked(store, batch, rules)
    for (const { id, document } of batch) {
      const found = unlinked.get(id)
      if (document !== null && found !== undefined) yield { document, unlinked: found }
    }
  }
}

/**
 * Returns an `Unlinked` for each document that belongs to no invoice, by the document's id. A document that names exactly one stored
 * invoice is left out.
 */
export async function findUnlinked(
  store: OperatorStore,
  documents: readonly KnownDocument[],
  rules: LinkRules,
): Promise<Map<number, Unlinked>> {
  const bodies = documents.flatMap(({ document }) => document ?? [])
  const { invoices } = invoicesNamedBy(bodies, rules)
  const tied = await store.findTied({ documents: documents.map(({ id }) => id), invoices })
  const isTied = new Set(tied.documents)
  const free = documents.filter(({ id }) => !isTied.has(id))
  const claimants = await store.findClaimants(claimantsOf(free, rules))
  const related = relate(free, claimants, rules)
  const isStored = new Set(tied.invoices)
  return new Map(
    free.flatMap(known => {
      const unlinked = judgeUnlinked(known, related.claimants(known), isStored, rules)
      return unlinked === null ? [] : [[known.id, unlinked]]
    }),
  )
}
