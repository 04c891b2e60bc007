/** Links invoices to stored documents, within a transaction. */
import { describeInvoiceDocument } from '../domain/document-json.ts'
import { type Invoice, type InvoiceDocument, invoiceFields, keyOf } from '../domain/invoice.ts'
import { deriveLink, type Link } from '../domain/link/derive-link.ts'
import type { Claimed, InvoiceNames, KnownDocument } from '../domain/link/known.ts'
import { fieldsOf, isGone, isLostAtOnce, type LinkRules } from '../domain/link/link.ts'
import { claimantsOf, documentsOf, paymentIds, type Related, relate } from '../domain/link/related.ts'
import type { KnownInvoice, WriteStore, WriteTransaction } from '../store/store.ts'
import { readBatches } from './concurrency.ts'
import type { DeletionGuard } from './deletion-guard.ts'

/** The rules and the guard that decide about links. They are set once, at the start of the program. */
export interface Linking {
  rules: LinkRules
  guard: DeletionGuard
}

export interface LinkOptions extends Linking {
  now: number
}

interface Linked extends Link {
  invoice: Invoice
  isChanged: boolean
  /** Null when the invoice has no document, or when the document was not read yet. */
  document: InvoiceDocument | null
}

/** Documents that a given invoice and another stored invoice may both have, and these other invoices. */
type ClaimedTwice = Pick<InvoiceNames, 'documents' | 'invoices'>

/** Derives the links of the given invoices, without saving. A link whose loss is held back stays as it is. */
export async function linkInvoices(
  tx: WriteTransaction,
  given: readonly Claimed[],
  { rules, guard, now }: LinkOptions,
): Promise<{ linked: Linked[]; claimedTwice: ClaimedTwice }> {
  const documents = await tx.findDocuments(documentsOf(given, rules))
  const isGiven = new Set(given.map(({ invoice }) => keyOf(invoice)))
  const stored = await tx.findClaimants(claimantsOf(documents, rules))
  const others = stored.filter(({ invoice }) => !isGiven.has(keyOf(invoice)))
  const related = relate(documents, [...given, ...others], rules)
  await askForClients(tx, documents, related)
  const byId = new Map(documents.map(known => [known.id, known]))
  const links = given.map(own => {
    const ids = [own.claim.ix_id, own.invoice.ix_id].flatMap(id => byId.get(id ?? -1) ?? [])
    const known = [...new Set([...ids, ...related.naming(own)])]
    return deriveLink(own, known, rules, now, known.flatMap(related.claimants))
  })
  const isLoss = ({ invoice }: Claimed, { fields }: Link) => {
    if (invoice.ix_sync_state !== 'synced' || fields.ix_sync_state === 'synced') return false
    const tied = byId.get(invoice.ix_id ?? -1)
    return tied === undefined || isGone(tied) || !isLostAtOnce(tied, invoice, related.claimants(tied), rules)
  }
  const kept = await keepLosses(tx, guard, given, links, isLoss)
  return {
    linked: kept.map((link, i) => toLinked((given[i] as Claimed).invoice, link, byId)),
    claimedTwice: findClaimedTwice(documents, others, related),
  }
}

/** Returns the new links. A link whose loss the guard holds back keeps its stored fields. */
async function keepLosses(
  tx: WriteTransaction,
  guard: DeletionGuard,
  given: readonly Claimed[],
  links: readonly Link[],
  isLoss: (before: Claimed, link: Link) => boolean,
): Promise<readonly Link[]> {
  const pairs = given.map((before, i) => ({ before, link: links[i] as Link }))
  const synced = pairs.filter(({ link }) => link.fields.ix_sync_state === 'synced')
  await guard.forget(
    tx,
    'lost_document',
    synced.map(({ before }) => before.invoice),
  )
  const losing = pairs.filter(({ before, link }) => isLoss(before, link))
  const keys = losing.map(({ before }) => before.invoice)
  if (losing.length === 0 || (await guard.allows(tx, 'lost_document', keys))) return links
  return pairs.map(pair =>
    losing.includes(pair) ? { ...pair.link, fields: fieldsOf(pair.before.invoice) } : pair.link,
  )
}

function toLinked(before: Invoice, link: Link, byId: ReadonlyMap<number, KnownDocument>): Linked {
  const invoice = { ...before, ...link.fields }
  const isChanged = invoiceFields.some(name => before[name] !== invoice[name])
  const { document = null, relations = null } = byId.get(invoice.ix_id ?? -1) ?? {}
  return {
    ...link,
    invoice,
    isChanged,
    document: document && describeInvoiceDocument(invoice, document, relations),
  }
}

/** Requests the clients of documents that name the number of an invoice. A number counts only together with the client's tax ID. */
async function askForClients(
  tx: WriteTransaction,
  documents: readonly KnownDocument[],
  related: Related,
): Promise<void> {
  const clients = documents.filter(related.isNumbered).flatMap(({ document }) => document?.client_id ?? [])
  if (clients.length > 0) await tx.askForClients([...new Set(clients)])
}

function findClaimedTwice(
  documents: readonly KnownDocument[],
  others: readonly Claimed[],
  related: Related,
): ClaimedTwice {
  const isOther = new Set(others)
  const disputed = documents.map(known => {
    return { id: known.id, others: related.claimants(known).filter(claimed => isOther.has(claimed)) }
  })
  return {
    documents: disputed.filter(({ others }) => others.length > 0).map(({ id }) => id),
    invoices: [...new Set(disputed.flatMap(({ others }) => others.map(({ invoice }) => invoice.id)))],
  }
}

/**
 * Links the invoices again that have one of the names in `wanted`. Returns the invoices whose link changed. `cause` goes into the journal.
 */
export async function relinkInvoices(
  tx: WriteTransaction,
  wanted: Partial<InvoiceNames>,
  cause: string,
  options: LinkOptions,
): Promise<Linked[]> {
  const keys = await tx.findLinked(wanted)
  if (keys.length === 0) return []
  const claimed = (await tx.findKnown(keys)).flatMap(known => {
    const own = readClaimed(known)
    return own === null ? [] : [{ ...own, document: known.document }]
  })
  const { linked, claimedTwice } = await linkInvoices(tx, claimed, options)
  const { now } = options
  const changed = linked.filter(({ isChanged }) => isChanged)
  await tx.saveDerivedLinks(
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
  // A gained document may have belonged to an invoice that was not in this run, so its other claimants are linked again.
  const gained = claimedTwice.documents.filter(id => changed.some(({ invoice }) => invoice.ix_id === id))
  if (gained.length === 0) return changed
  const others = await relinkInvoices(tx, { documents: gained }, cause, options)
  return [...changed, ...others]
}

/** Returns a stored invoice with its claim. Null when it is not stored, or did not come from the payment platform. */
export function readClaimed({ summary, claim, payment }: KnownInvoice): Claimed | null {
  if (summary === null || claim === null) return null
  const payments = payment === null ? [] : paymentIds(JSON.parse(payment))
  return { invoice: JSON.parse(summary) as Invoice, claim, payments }
}

/**
 * Links invoices again whose document is being created, because creation
 * counts as failed after a while. Returns the number of changed invoices.
 */
export async function ageClaims(store: WriteStore, linking: Linking): Promise<number> {
  let changed = 0
  for await (const keys of readBatches(store.readCreating)) {
    const wanted = { invoices: keys.map(({ id }) => id) }
    const relinked = await store.transaction(tx =>
      relinkInvoices(tx, wanted, 'time', { ...linking, now: Date.now() }),
    )
    changed += relinked.length
  }
  return changed
}
