/** Links invoices to stored documents, within a transaction. */
import { describeInvoiceDocument } from '../document-json.ts'
import { type Invoice, type InvoiceDocument, invoiceFields, keyOf } from '../invoice.ts'
import {
  deriveLink,
  fieldsOf,
  findRefusal,
  invoiceIdOf,
  isGone,
  type Link,
  type LinkRules,
  namedBy,
  referenceOf,
} from '../linking/link.ts'
import type { Claimed } from '../store/document-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import { readBatches } from './concurrency.ts'
import type { DeletionGuard } from './deletion-guard.ts'

export interface LinkOptions {
  rules: LinkRules
  guard: DeletionGuard
  /** In milliseconds; the current time when not given. */
  now?: number
}

interface Linked extends Link {
  invoice: Invoice
  isChanged: boolean
  /** As far as it was read. */
  document: InvoiceDocument | null
}

/** Writes nothing. A link whose loss is held back stays. `contested`: documents claimed by stored invoices, which a given one may gain or lose. */
export async function linkInvoices(
  tx: WriteTransaction,
  given: readonly Claimed[],
  { rules, guard, now = Date.now() }: LinkOptions,
): Promise<{ linked: Linked[]; contested: number[] }> {
  const documents = await tx.findDocuments({
    ids: [...new Set(given.flatMap(({ invoice, claim }) => [claim.ix_id ?? [], invoice.ix_id ?? []].flat()))],
    references: given.map(({ invoice }) => referenceOf(invoice.id, rules)),
  })
  // A reference that names an invoice outweighs claims.
  const free = documents.filter(({ document }) => document !== null && namedBy(document, rules) === null)
  const isGiven = new Set(given.map(({ invoice }) => keyOf(invoice)))
  const stored = await tx.findClaimants(free.map(({ id }) => id))
  const others = stored.filter(({ invoice }) => !isGiven.has(keyOf(invoice)))
  const claimants = [...given, ...others]
  const contested = [...new Set(others.flatMap(({ claim }) => claim.ix_id ?? []))]
  const byId = new Map(documents.map(known => [known.id, known]))
  const byInvoice = Map.groupBy(documents, ({ document }) => invoiceIdOf(document?.reference ?? null, rules))
  const linked = given.map(({ invoice, claim }): Linked => {
    const ids = [claim.ix_id, invoice.ix_id].flatMap(id => byId.get(id ?? -1) ?? [])
    const known = [...new Set([...ids, ...(byInvoice.get(invoice.id) ?? [])])]
    const link = deriveLink(invoice, claim, known, rules, now, claimants)
    const after = { ...invoice, ...link.fields }
    const isChanged = invoiceFields.some(name => invoice[name] !== after[name])
    return { ...link, invoice: after, isChanged, document: describe(after) }
  })
  function describe(invoice: Invoice): InvoiceDocument | null {
    const { document = null, relations = null } = byId.get(invoice.ix_id ?? -1) ?? {}
    return document && describeInvoiceDocument(invoice, document, relations)
  }
  const losing = linked.filter(({ invoice }, i) => {
    const before = given[i]?.invoice
    if (!isSynced(before) || isSynced(invoice)) return false
    // A document that belongs to another invoice is lost at once, however many there are.
    const tied = byId.get(before?.ix_id ?? -1)
    return tied === undefined || isGone(tied) || findRefusal(tied, invoice, claimants, rules) === null
  })
  await guard.forget(tx, 'downgrade', linked.map(({ invoice }) => invoice).filter(isSynced))
  const keys = losing.map(({ invoice }) => invoice)
  if (losing.length === 0 || (await guard.allows(tx, 'downgrade', keys))) return { linked, contested }
  const held = linked.map((link, i) => {
    const before = given[i]?.invoice
    if (before === undefined || !losing.includes(link)) return link
    return {
      ...link,
      fields: fieldsOf(before),
      invoice: before,
      isChanged: false,
      document: describe(before),
    }
  })
  return { linked: held, contested }
}

function isSynced(invoice: Invoice | undefined): boolean {
  return invoice?.ix_sync_state === 'synced'
}

/** Links these invoices, and those of these documents, again. Returns those whose link changed; the journal keeps `cause`. */
export async function relinkInvoices(
  tx: WriteTransaction,
  wanted: { documents: readonly number[]; invoices: readonly string[] },
  cause: string,
  { now = Date.now(), ...options }: LinkOptions,
): Promise<Linked[]> {
  const keys = await tx.findLinked(wanted)
  if (keys.length === 0) return []
  const claimed = (await tx.findKnown(keys)).flatMap(({ summary, claim, document }) =>
    summary === null || claim === null ? [] : [{ invoice: JSON.parse(summary) as Invoice, claim, document }],
  )
  const { linked, contested } = await linkInvoices(tx, claimed, { ...options, now })
  const changed = linked.filter(({ isChanged }) => isChanged)
  await tx.relinkInvoices(
    linked.filter(
      ({ isChanged, document }, i) =>
        isChanged || (document && JSON.stringify(document)) !== claimed[i]?.document,
    ),
  )
  await tx.saveEntries(
    changed.map(({ invoice: { customer_id, id }, fields, why }) => ({
      ...{ customer_id, id, cause: `${cause} ${now}`, type: 'document', happened_at: null, at: now },
      outcome: 'applied',
      detail: `${fields.ix_sync_state}: ${why}`,
    })),
  )
  // A document may have been another's until now: that of a claimant who is not among these.
  const gained = contested.filter(id => changed.some(({ invoice }) => invoice.ix_id === id))
  if (gained.length === 0) return changed
  const others = await relinkInvoices(tx, { documents: gained, invoices: [] }, cause, { ...options, now })
  return [...changed, ...others]
}

/** Links invoices again whose document is being created, since that fails after a while. Returns the number that changed. */
export async function ageClaims(store: WriteStore, options: LinkOptions): Promise<number> {
  let changed = 0
  for await (const keys of readBatches(store.readCreating)) {
    const wanted = { documents: [], invoices: keys.map(({ id }) => id) }
    const relinked = await store.transaction(tx => relinkInvoices(tx, wanted, 'time', options))
    changed += relinked.length
  }
  return changed
}
