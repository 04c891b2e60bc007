/** Invoices and documents in the scope of a reconciliation, batch by batch. */
import type { Document } from '../document.ts'
import type { InvoiceKey } from '../invoice.ts'
import { invoiceIdOf, type LinkRules, referenceOf } from '../linking/link.ts'
import type { Claimed, KnownDocument, LinkedInvoice } from '../store/document-store.ts'
import type { OperatorStore } from '../store/store.ts'

export interface Scope {
  customer: string | null
  /** Days of a time zone, YYYY-MM-DD, both inclusive; null without any bound. */
  days: { from: string; to: string } | null
  /** The same as moments: the first, and the first after the last. */
  from: number
  to: number
}

const batchSize = 500

/** In the order of their keys. */
export async function* readBatches(
  store: OperatorStore,
  { customer, days, from, to }: Scope,
): AsyncGenerator<LinkedInvoice[]> {
  let after: InvoiceKey | null = null
  for (;;) {
    const batch: LinkedInvoice[] = await store.readLinked(after, batchSize, customer)
    yield batch.filter(({ summary }) => {
      const moment = days === null ? 0 : Date.parse(JSON.parse(summary).issued_at)
      return moment >= from && moment < to
    })
    if (batch.length < batchSize) return
    after = batch.at(-1) ?? null
  }
}

/** Each with the documents that refer to it or that it claims, and with all invoices that claim one of the batch's documents. */
export async function* readChecked(
  store: OperatorStore,
  scope: Scope,
  rules: LinkRules,
): AsyncGenerator<{ linked: LinkedInvoice; known: KnownDocument[]; claimants: Claimed[] }> {
  for await (const batch of readBatches(store, scope)) {
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
export async function* readUnlinked(
  store: OperatorStore,
  { customer, days }: Scope,
  rules: LinkRules,
): AsyncGenerator<Document> {
  for (let after = 0; customer === null; ) {
    const batch = await store.readInForce(after, batchSize, days)
    const tied = await store.findTied({
      documents: batch.map(({ id }) => id),
      invoices: batch.flatMap(({ reference }) => invoiceIdOf(reference, rules) ?? []),
    })
    const [documents, invoices] = [new Set(tied.documents), new Set<string | null>(tied.invoices)]
    for (const document of batch)
      if (!documents.has(document.id) && !invoices.has(invoiceIdOf(document.reference, rules))) yield document
    if (batch.length < batchSize) return
    after = batch.at(-1)?.id ?? after
  }
}
