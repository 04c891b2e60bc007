/** Ties invoices to the documents that are stored, within a transaction. */
import type { Invoice, InvoiceKey } from '../invoice.ts'
import {
  deriveLink,
  fieldsOf,
  findRefusal,
  invoiceIdOf,
  isGone,
  type Link,
  type LinkFields,
  type LinkRules,
  namedBy,
  referenceOf,
} from '../linking/link.ts'
import type { Claimed, JournalEntry, KnownDocument } from '../store/document-store.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import { type Brake, noBrake } from './brake.ts'

export interface Linked extends Link {
  invoice: Invoice
  /** Whether anything about the document changed. */
  isChanged: boolean
}

export interface LinkedInvoices {
  /** In the order given. */
  linked: Linked[]
  /** Documents that stored invoices claim which are not given: what is given may take or leave one of theirs. */
  contested: number[]
}

/** Nothing is written. What the brake holds back stays as it was. */
export async function linkInvoices(
  tx: WriteTransaction,
  given: readonly Claimed[],
  rules: LinkRules,
  now: number,
  brake: Brake = noBrake,
): Promise<LinkedInvoices> {
  const documents = await tx.findDocuments({
    ids: [...new Set(given.flatMap(({ invoice, claim }) => [claim.ix_id ?? [], invoice.ix_id ?? []].flat()))],
    references: given.map(({ invoice }) => referenceOf(invoice.id, rules)),
  })
  const others = await findOthers(tx, given, documents, rules)
  const claimants = [...given, ...others]
  const contested = [...new Set(others.flatMap(({ claim }) => claim.ix_id ?? []))]
  const byId = new Map(documents.map(known => [known.id, known]))
  const byInvoice = Map.groupBy(documents, ({ document }) => invoiceIdOf(document?.reference ?? null, rules))
  const linked = given.map(({ invoice, claim }): Linked => {
    const ids = [claim.ix_id, invoice.ix_id].flatMap(id => byId.get(id ?? -1) ?? [])
    const known = [...new Set([...ids, ...(byInvoice.get(invoice.id) ?? [])])]
    const link = deriveLink(invoice, claim, known, rules, now, claimants)
    return { ...link, invoice: { ...invoice, ...link.fields }, isChanged: differs(invoice, link.fields) }
  })
  const losing = linked.filter(({ invoice }, i) => {
    const before = given[i]?.invoice
    if (!isSynced(before) || isSynced(invoice)) return false
    // A document that is another invoice's is lost at once, however many there are.
    const tied = byId.get(before?.ix_id ?? -1)
    return tied === undefined || isGone(tied) || findRefusal(tied, invoice, claimants, rules) === null
  })
  await brake.forget(tx, 'downgrade', linked.map(({ invoice }) => invoice).filter(isSynced))
  const keys = losing.map(({ invoice }) => invoice)
  if (losing.length === 0 || (await brake.allows(tx, 'downgrade', keys))) return { linked, contested }
  const held = linked.map((link, i) => {
    const before = given[i]?.invoice
    if (before === undefined || !losing.includes(link)) return link
    return { ...link, fields: fieldsOf(before), invoice: before, isChanged: false }
  })
  return { linked: held, contested }
}

/** Stored invoices that are not given and claim one of the documents. A document whose reference names an invoice is nobody else's. */
async function findOthers(
  tx: WriteTransaction,
  given: readonly Claimed[],
  documents: readonly KnownDocument[],
  rules: LinkRules,
): Promise<Claimed[]> {
  const free = documents.filter(({ document }) => document !== null && namedBy(document, rules) === null)
  const stored = await tx.findClaimants(free.map(({ id }) => id))
  const isGiven = new Set(given.map(({ invoice }) => keyOf(invoice)))
  return stored.filter(({ invoice }) => !isGiven.has(keyOf(invoice)))
}

function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

function isSynced(invoice: Invoice | undefined): boolean {
  return invoice?.ix_sync_state === 'synced'
}

/**
 * Derives again what the invoices of some documents say of them, and writes what changed. Says which changed. `cause` names
 * in the journal what led here.
 */
export async function relinkInvoices(
  tx: WriteTransaction,
  wanted: { documents: readonly number[]; invoices: readonly string[] },
  rules: LinkRules,
  cause: string,
  now: number = Date.now(),
  brake: Brake = noBrake,
): Promise<Linked[]> {
  const keys = await tx.findLinked(wanted)
  if (keys.length === 0) return []
  const claimed = (await tx.findKnown(keys)).flatMap(({ summary, claim }) =>
    summary === null || claim === null ? [] : [{ invoice: JSON.parse(summary) as Invoice, claim }],
  )
  const { linked } = await linkInvoices(tx, claimed, rules, now, brake)
  const changed = linked.filter(({ isChanged }) => isChanged)
  await tx.relinkInvoices(changed.map(({ invoice }) => invoice))
  await tx.saveEntries(changed.map(link => documentEntry(link, cause, now)))
  return changed
}

const batchSize = 500

/** That a document is in the making means something else once it is too long. Says how many invoices changed. */
export async function ageClaims(
  store: WriteStore,
  rules: LinkRules,
  brake: Brake = noBrake,
): Promise<number> {
  let changed = 0
  let after: InvoiceKey | null = null
  for (;;) {
    const keys: InvoiceKey[] = await store.readCreating(after, batchSize)
    const wanted = { documents: [], invoices: keys.map(({ id }) => id) }
    const relinked = await store.transaction(tx =>
      relinkInvoices(tx, wanted, rules, 'time', Date.now(), brake),
    )
    changed += relinked.length
    if (keys.length < batchSize) return changed
    after = keys.at(-1) ?? null
  }
}

function documentEntry({ invoice, fields, why }: Linked, cause: string, now: number): JournalEntry {
  const { customer_id, id } = invoice
  return {
    customer_id,
    id,
    cause: `${cause} ${now}`,
    type: 'document',
    happened_at: null,
    at: now,
    outcome: 'applied',
    detail: `${fields.ix_sync_state}: ${why}`,
  }
}

function differs(invoice: Invoice, fields: LinkFields): boolean {
  return Object.entries(fields).some(([name, value]) => invoice[name as keyof LinkFields] !== value)
}
