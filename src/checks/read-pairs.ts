/** Invoices and documents in the scope of a reconciliation, batch by batch. */
import type { Document } from '../document.ts'
import { invoiceIdOf, type LinkRules, referenceOf } from '../linking/link.ts'
import type { LinkedInvoice } from '../store/document-store.ts'
import type { OperatorStore } from '../store/store.ts'
import { readBatches } from '../sync/concurrency.ts'

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

/** Each with the documents that refer to it or that it claims, and with all invoices that claim one of the batch's documents. */
export async function* readChecked(store: OperatorStore, scope: Scope, rules: LinkRules) {
  for await (const batch of readInScope(store, scope)) {
    const references = batch.map(({ id }) => referenceOf(id, rules))
    const ids = batch.flatMap(({ claim }) => claim?.ix_id ?? [])
    const documents = batch.length === 0 ? [] : await store.findDocuments({ ids, references })
    const claimants = await store.findClaimants(ids)
    const byReference = Map.groupBy(documents, ({ document }) => document?.reference ?? null)
    const byId = new Map(documents.map(known => [known.id, known]))
    for (const linked of batch) {
      const referring = byReference.get(referenceOf(linked.id, rules)) ?? []
      yield { linked, known: [...referring, ...[byId.get(linked.claim?.ix_id ?? 0) ?? []].flat()], claimants }
    }
  }
}

/** Documents in force that no invoice is tied to; none within one customer, for a document names no customer. */
export async function* readUnlinked(store: OperatorStore, { customer, days }: Scope, rules: LinkRules) {
  if (customer !== null) return
  const read = (after: Document | null, limit: number) => store.readInForce(after?.id ?? 0, limit, days)
  for await (const batch of readBatches(read)) yield* batch.filter(await findUnlinked(store, batch, rules))
}

/** Whether no invoice is tied to one of the documents, claims it, or is named by it. */
export async function findUnlinked(store: OperatorStore, documents: readonly Document[], rules: LinkRules) {
  const tied = await store.findTied({
    documents: documents.map(({ id }) => id),
    invoices: documents.flatMap(({ reference }) => invoiceIdOf(reference, rules) ?? []),
  })
  const [ids, invoices] = [new Set(tied.documents), new Set<string | null>(tied.invoices)]
  return ({ id, reference }: Document) => !ids.has(id) && !invoices.has(invoiceIdOf(reference, rules))
}
