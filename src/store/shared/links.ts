/** Links of the payment platform's invoices to documents. */
import type { Claim } from '../../document.ts'
import type { Invoice, InvoiceKey } from '../../invoice.ts'
import { columnsFor, type Db, type Insertion, queryColumn } from './db.ts'

const linkInsertion: Insertion = {
  into: 'fatura.links',
  columns: columnsFor('links', 'claimed_id', 'ix_id'),
  rest: `ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
    ix_id = excluded.ix_id, claim = excluded.claim
    WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id`,
}

const clientInsertion: Insertion = {
  into: 'fatura.document_clients',
  columns: { id: 'bigint', observed_at: 'bigint' },
  rest: 'ON CONFLICT DO NOTHING',
}

const relationsInsertion: Insertion = { ...clientInsertion, into: 'fatura.document_relations' }

/** The stored columns of a claim: the payment platform's invoices alone have one. */
export function linkOf({ ix_id }: Pick<Invoice, 'ix_id'>, claim: Claim | undefined) {
  if (claim === undefined) return { state: null, claimed_id: null, ix_id: null, claim: null }
  return { state: claim.state, claimed_id: claim.ix_id, ix_id, claim: JSON.stringify(claim) }
}

interface Claiming {
  invoice: Pick<Invoice, 'customer_id' | 'id' | 'ix_id'>
  claim?: Claim
}

/** Links of records that have a claim; no two of the same invoice. */
export async function saveLinks(db: Db, records: readonly Claiming[]): Promise<void> {
  const rows = records.flatMap(({ invoice, claim }) => {
    const link = linkOf(invoice, claim)
    if (link.claim === null) return []
    return [[invoice.customer_id, invoice.id, link.state, link.claimed_id, link.ix_id, link.claim]]
  })
  if (rows.length === 0) return
  await db.insert(linkInsertion, rows)
  await askForRest(db, records)
}

/** Asks for the rest of the documents of records with a claim: their clients and their relations. */
export async function askForRest(db: Db, records: readonly Claiming[]): Promise<void> {
  const documents = records.flatMap(({ invoice, claim }) => (claim && invoice.ix_id) ?? [])
  if (documents.length === 0) return
  await db.insert(
    relationsInsertion,
    [...new Set(documents)].sort((a, b) => a - b).map(id => [id, 0]),
  )
  const clients = await queryColumn(
    db,
    `SELECT DISTINCT client_id FROM fatura.documents
     WHERE ${db.isAmong('id', '$1')} AND client_id IS NOT NULL ORDER BY client_id`,
    [documents],
  )
  await db.insert(
    clientInsertion,
    clients.map(id => [id, 0]),
  )
}

/** Ties invoices to other documents. Their customers are nobody else's to change until the end. */
export async function relink(db: Db, given: readonly { invoice: Invoice }[]): Promise<void> {
  const invoices = given.map(({ invoice }) => invoice)
  const rows = await db.query<InvoiceKey & { claim: string }>(
    `SELECT customer_id, invoice_id AS id, claim FROM fatura.links
     WHERE ${db.isAmong('customer_id', '$1')} AND ${db.isAmong('invoice_id', '$2')}`,
    [[...new Set(invoices.map(({ customer_id }) => customer_id))], invoices.map(({ id }) => id)],
  )
  const claims = new Map(rows.map(({ customer_id, id, claim }) => [`${customer_id} ${id}`, claim]))
  const linked = invoices.flatMap(invoice => {
    const claim = claims.get(`${invoice.customer_id} ${invoice.id}`)
    return claim === undefined ? [] : [{ invoice, claim: JSON.parse(claim) as Claim }]
  })
  await saveLinks(db, linked)
}
