/** What invoices say of their documents, and whom they are made out to, written in bulk within a transaction. */
import type { PoolClient } from 'pg'
import type { Invoice, InvoiceKey } from '../../invoice.ts'
import { serializeSummary } from '../../invoice-json.ts'
import { type SearchText, searchText } from '../read-model/search.ts'
import type { Insertion } from '../shared/db.ts'
import { relink } from '../shared/links.ts'
import type { Counting } from './counts.ts'
import { insertRows } from './insert-rows.ts'
import { createDb } from './shared-db.ts'
import { ofCustomers } from './spread.ts'

type Relinked = InvoiceKey & { issued_at: number; party_id: number }

export async function relinkInvoices(
  client: PoolClient,
  counting: Counting,
  invoices: readonly Invoice[],
): Promise<void> {
  if (invoices.length === 0) return
  await counting.lock(invoices.map(({ customer_id }) => customer_id))
  const searches = invoices.map(searchText)
  await saveParties(
    client,
    invoices.map(({ customer_id }, i) => ({ customer_id, search: searches[i] as SearchText })),
  )
  const keys = [invoices.map(({ customer_id }) => customer_id), invoices.map(({ id }) => id)]
  const { rows: before } = await client.query<Relinked>({
    name: 'read-parties',
    text: `
      SELECT i.customer_id, i.id, i.issued_at, i.party_id FROM fatura.invoices i
      JOIN unnest($1::text[], $2::text[]) AS given (customer_id, id)
        ON i.customer_id = given.customer_id AND i.id = given.id${ofCustomers(client, 'i.customer_id', '$1')}`,
    values: keys,
  })
  await client.query({
    name: 'relink-invoices',
    text: `
      UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, party_id = given.party_id,
        own_text = given.own_text, summary = given.summary
      FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::text[])
        AS given (customer_id, id, ix_status, party_id, own_text, summary)
      WHERE stored.customer_id = given.customer_id AND stored.id = given.id
        ${ofCustomers(client, 'stored.customer_id', '$1')}`,
    values: [
      ...keys,
      invoices.map(({ ix_status }) => ix_status),
      searches.map(({ party_id }) => party_id),
      searches.map(({ own }) => Buffer.from(own)),
      invoices.map(serializeSummary),
    ],
  })
  const parties = new Map(invoices.map(({ customer_id, id }, i) => [`${customer_id} ${id}`, searches[i]]))
  for (const { customer_id, id, issued_at, party_id } of before) {
    counting.note(customer_id, issued_at)
    if (parties.get(`${customer_id} ${id}`)?.party_id !== party_id) counting.leaveParty(customer_id, party_id)
  }
  await relink(createDb(client, true), invoices)
}

const partyInsertion: Insertion = {
  into: 'fatura.parties',
  columns: { customer_id: 'text', party_id: 'bigint', text: 'text' },
  onConflict: 'DO NOTHING',
}

/** Whom invoices are made out to, each once. */
async function saveParties(
  client: PoolClient,
  given: readonly { customer_id: string; search: SearchText }[],
): Promise<void> {
  const parties = new Map(given.map(each => [`${each.customer_id} ${each.search.party_id}`, each]))
  await insertRows(
    client,
    partyInsertion,
    [...parties.values()].map(({ customer_id, search }) => [customer_id, search.party_id, search.party]),
  )
}
