/**
 * Determines what must be read before links are derived: the documents of invoices, and other invoices that may own these documents. Pure
 * functions.
 */
import type { Document } from '../document.ts'
import type { PaymentFacts } from '../payment.ts'
import type { Claimed, DocumentNames, InvoiceNames, KnownDocument } from './known.ts'
import type { LinkRules } from './link.ts'
import { nameKey, namesIn, namesOf, referencesTo, valuesOf } from './reference.ts'

/** Returns the IDs of all payments of an invoice, paid or not. */
export function paymentIds(facts: Pick<PaymentFacts, 'payments'> | undefined): string[] {
  return facts?.payments.map(({ id }) => id) ?? []
}

/** Returns the documents that the invoices claim, are linked to, or are named by. */
export function documentsOf(given: readonly Claimed[], { references }: LinkRules): DocumentNames {
  return {
    ids: [...new Set(given.flatMap(({ invoice, claim }) => [claim.ix_id ?? [], invoice.ix_id ?? []].flat()))],
    references: [...new Set(given.flatMap(each => referencesTo(namesOf(each), references)))],
  }
}

export function invoicesNamedBy(
  documents: readonly Pick<Document, 'reference' | 'uid'>[],
  { references }: LinkRules,
): Omit<InvoiceNames, 'documents'> {
  const names = documents.flatMap(document => namesIn(document, references))
  return {
    invoices: valuesOf('id', names),
    payments: valuesOf('payment', names),
    numbers: valuesOf('number', names),
  }
}

/**
 * Returns the names by which the store finds the invoices that may own one of the documents. A document that names an invoice ID is left
 * out, because only that invoice may own it.
 */
export function claimantsOf(
  documents: readonly KnownDocument[],
  rules: LinkRules,
): Omit<InvoiceNames, 'invoices'> {
  const free = documents.flatMap(({ document }) => document ?? []).filter(each => !hasId(each, rules))
  const { payments, numbers } = invoicesNamedBy(free, rules)
  return { documents: free.map(({ id }) => id), payments, numbers }
}

function hasId(document: Document, { references }: LinkRules): boolean {
  return namesIn(document, references).some(({ kind }) => kind === 'id')
}

export type Related = ReturnType<typeof relate>

/** Finds which documents name an invoice, and which invoices may own a document. */
export function relate(
  documents: readonly KnownDocument[],
  claimants: readonly Claimed[],
  { references }: LinkRules,
) {
  const namesOfDocument = new Map(
    documents.map(known => [known, known.document === null ? [] : namesIn(known.document, references)]),
  )
  const byName = groupByAll(documents, known => (namesOfDocument.get(known) ?? []).map(nameKey))
  const having = groupByAll(claimants, claimed => namesOf(claimed).map(nameKey))
  const claiming = Map.groupBy(claimants, ({ claim }) => claim.ix_id)
  return {
    /** Returns the documents that name the invoice, alone or together with other invoices. */
    naming: (claimed: Claimed) => [
      ...new Set(namesOf(claimed).flatMap(name => byName.get(nameKey(name)) ?? [])),
    ],
    /** Returns the invoices that claim the document or have a name that the document holds. */
    claimants(known: KnownDocument): Claimed[] {
      const named = (namesOfDocument.get(known) ?? []).flatMap(name => having.get(nameKey(name)) ?? [])
      return [...new Set([...(claiming.get(known.id) ?? []), ...named])]
    },
    /** Tells whether some invoice has a number that the document names, whoever the document's client is. */
    isNumbered: (known: KnownDocument) =>
      (namesOfDocument.get(known) ?? []).some(name => name.kind === 'number' && having.has(nameKey(name))),
  }
}

function groupByAll<T>(all: readonly T[], keysOf: (one: T) => readonly string[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all)
    for (const key of new Set(keysOf(one))) {
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [one])
      else group.push(one)
    }
  return groups
}
