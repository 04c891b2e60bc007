/** Invoices and documents in the scope of a reconciliation, batch by batch. */
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
  /** Days of a time zone, YYYY-MM-DD, both inclusive; null without any bound. */
  days: { from: string; to: string } | null
  /** The same as moments: the first, and the first after the last. */
  from: number
  to: number
}

/** In the order of their keys. */
export async function* readInScope(store: OperatorStore, { customer, days, from, to }: Scope) {
  const read = (after: LinkedInvoice | null, limit: number) => store.readLinked(after, limit, customer)
  for await (const batch of readBatches(read))
    yield batch.filter(({ summary }) => {
      const moment = days === null ? 0 : Date.parse(JSON.parse(summary).issued_at)
      return moment >= from && moment < to
    })
}

/** Each with the documents that name it or that it claims, and with all invoices that may own one of these. */
export async function* readChecked(store: OperatorStore, scope: Scope, rules: LinkRules) {
  for await (const batch of readInScope(store, scope)) {
    const given = batch.map(toClaimed)
    const documents = batch.length === 0 ? [] : await store.findDocuments(documentsOf(given, rules))
    const related = relate(documents, await store.findClaimants(claimantsOf(documents, rules)), rules)
    const byId = new Map(documents.map(known => [known.id, known]))
    for (const [i, own] of given.entries()) {
      const linked = batch[i] as LinkedInvoice
      const known = [...new Set([...related.naming(own), ...[byId.get(own.claim.ix_id ?? 0) ?? []].flat()])]
      // What came from elsewhere, such as an imported invoice, owns no document.
      const claimants = [...(linked.claim === null ? [] : [own]), ...known.flatMap(related.claimants)]
      yield { linked, known, claimants }
    }
  }
}

function toClaimed({ summary, claim, payment }: LinkedInvoice): Claimed {
  return { invoice: JSON.parse(summary) as Invoice, claim: claim ?? noClaim, payments: paymentIds(payment) }
}

/** Documents in force that no invoice is tied to; none within one customer, for a document names no customer. */
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

/** By document, what it names instead, for those that no invoice is tied to or claims, and that name no invoice alone. */
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
