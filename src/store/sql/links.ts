/** Writes the links between the payment platform's invoices and documents. */
import type { Claim } from '../../domain/document.ts'
import type { Invoice, InvoiceKey } from '../../domain/invoice.ts'
import type { Relinked } from '../document-store.ts'
import type { Countable } from './counters.ts'
import { columnsFor, type Db, type Insertion, queryColumn } from './db.ts'
import { type InvoiceRow, toRow } from './invoice-row.ts'
import type { Counters } from './write-counters.ts'

const linkInsertion: Insertion = {
  into: 'fatura.links',
  columns: columnsFor('links', 'claimed_id', 'ix_id'),
  rest: `ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
    ix_id = excluded.ix_id, claim = excluded.claim, number = excluded.number
    WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id
      OR stored.number IS DISTINCT FROM excluded.number`,
}

const clientInsertion: Insertion = {
  into: 'fatura.document_clients',
  columns: { id: 'bigint', observed_stamp: 'bigint' },
  rest: 'ON CONFLICT DO NOTHING',
}

const relationsInsertion: Insertion = { ...clientInsertion, into: 'fatura.document_relations' }

/** Returns the columns of a link. All are null without a claim. Only invoices of the payment platform have claims. */
export function linkOf({ ix_id, number }: Pick<Invoice, 'ix_id' | 'number'>, claim: Claim | undefined) {
  if (claim === undefined) return { state: null, claimed_id: null, ix_id: null, claim: null, number: null }
  return { state: claim.state, claimed_id: claim.ix_id, ix_id, claim: JSON.stringify(claim), number }
}

interface Claiming {
  invoice: Pick<Invoice, 'customer_id' | 'id' | 'ix_id' | 'number'>
  claim?: Claim
}

/** Saves the links of records that have a claim. Two records must not be of the same invoice. */
export async function saveLinks(db: Db, records: readonly Claiming[]): Promise<void> {
  const rows = records.flatMap(({ invoice, claim }) => {
    const link = linkOf(invoice, claim)
    if (link.claim === null) return []
    const { customer_id, id } = invoice
    return [[customer_id, id, link.state, link.claimed_id, link.ix_id, link.claim, link.number]]
  })
  await db.insert(linkInsertion, rows)
  await askForRest(db, records)
}

/** Marks the clients and relations of linked documents to be read, for records with a claim. */
export async function askForRest(db: Db, records: readonly Claiming[]): Promise<void> {
  const documents = records.flatMap(({ invoice, claim }) => (claim && invoice.ix_id) ?? [])
  if (documents.length === 0) return
  await db.insert(
    relationsInsertion,
    [...new Set(documents)].sort((a, b) => a - b).map(id => [id, 0]),
  )
  const clients = await queryColumn<number>(
    db,
    `SELECT DISTINCT client_id FROM fatura.documents
     WHERE ${db.isAmong('id', '$1')} AND client_id IS NOT NULL ORDER BY client_id`,
    [documents],
  )
  await askForClients(db, clients)
}

export async function askForClients(db: Db, ids: readonly number[]): Promise<void> {
  await db.insert(
    clientInsertion,
    ids.map(id => [id, 0]),
  )
}

export const keyOf = ({ customer_id, id }: InvoiceKey) => `${customer_id} ${id}`

/** Links invoices to other documents. `update` writes the invoice columns that depend on documents. */
export async function saveDerivedLinks(
  db: Db,
  counters: Counters,
  given: readonly Relinked[],
  update: (rows: readonly InvoiceRow[]) => Promise<void>,
): Promise<void> {
  if (given.length === 0) return
  const customers = [...new Set(given.map(({ invoice }) => invoice.customer_id))]
  await counters.lock(customers)
  const rows = await db.query<InvoiceKey & Countable & { payment: string; claim: string | null }>(
    `SELECT i.customer_id, i.id, i.issued_at, i.status, i.ix_status, i.currency, i.total_cents, i.payment, l.claim
     FROM fatura.invoices i LEFT JOIN fatura.links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
     WHERE ${db.isAmong('i.customer_id', '$1')} AND ${db.isAmong('i.id', '$2')}`,
    [customers, given.map(({ invoice }) => invoice.id)],
  )
  const stored = new Map(rows.map(row => [keyOf(row), row]))
  const there = given.flatMap(({ invoice, document }) => {
    const before = stored.get(keyOf(invoice))
    return before === undefined ? [] : [{ invoice, document, before }]
  })
  await update(
    there.map(({ invoice, document, before }) =>
      toRow({ invoice, lines: null, document, payment: JSON.parse(before.payment) }),
    ),
  )
  const linked = there.flatMap(({ invoice, before }) => {
    counters.record(invoice, before, { ...before, ix_status: invoice.ix_status }, true)
    return before.claim === null ? [] : [{ invoice, claim: JSON.parse(before.claim) as Claim }]
  })
  await saveLinks(db, linked)
}
