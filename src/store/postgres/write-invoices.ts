/** Rows in bulk: one statement a table and batch, its values as arrays. */
import type { PoolClient } from 'pg'
import type { InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeLines, serializeSummary } from '../../invoice-json.ts'
import { type SearchText, searchText } from '../read-model/search.ts'
import type { Insertion } from '../shared/db.ts'
import { deleteLink, saveLinks, saveTombstone } from '../shared/links.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import type { Counting } from './counts.ts'
import { insertRows } from './insert-rows.ts'
import { saveParties } from './relink-invoices.ts'
import { createDb } from './shared-db.ts'
import { ofCustomers } from './spread.ts'

/** Says how many records differed from what was stored. */
export async function saveInvoices(
  client: PoolClient,
  counting: Counting,
  records: readonly InvoiceRecord[],
  observedAt: number | readonly number[],
): Promise<number> {
  const stamped = records.map((record, index) => ({ ...record, observed_at: stampOf(observedAt, index) }))
  const given: Row[] = inKeyOrder(stamped).map(record => ({
    ...record,
    search: searchText(record.invoice),
    summary: serializeSummary(record.invoice),
  }))
  if (given.length === 0) return 0
  await counting.lock(given.map(({ invoice }) => invoice.customer_id))
  const stored = await readRows(client, given)
  // What was observed later than this stays as it is, its lines included.
  const batch = given.filter(
    ({ invoice, observed_at }) => !((stored.get(keyOf(invoice))?.observed_at ?? 0) > observed_at),
  )
  const isAlike = ({ invoice, search, summary }: Row) => {
    const row = stored.get(keyOf(invoice))
    return row?.summary === summary && row.own_text === search.own && row.party_id === search.party_id
  }
  const issued = new Map(batch.map(({ invoice }) => [keyOf(invoice), Date.parse(invoice.issued_at)]))
  await touchRows(client, batch.filter(isAlike))
  const differing = batch.filter(row => !isAlike(row))
  await saveParties(
    client,
    differing
      .filter(({ invoice, search }) => stored.get(keyOf(invoice))?.party_id !== search.party_id)
      .map(({ invoice, search }) => ({ customer_id: invoice.customer_id, search })),
  )
  await saveRows(client, differing)
  const changed = [
    ...differing.map(({ invoice }) => invoice),
    ...(await saveLines(
      client,
      batch.filter(({ lines }) => lines !== null),
    )),
    ...(await deleteLines(
      client,
      batch.filter(({ invoice, lines }) => lines === null && stored.has(keyOf(invoice))),
    )),
  ]
  await saveLinks(createDb(client, true), batch)
  for (const key of changed) {
    const [before, now] = [stored.get(keyOf(key))?.issued_at, issued.get(keyOf(key))]
    counting.note(key.customer_id, ...[before, now].filter(moment => moment !== undefined))
  }
  for (const { invoice, search } of differing) {
    const before = stored.get(keyOf(invoice))
    if (before !== undefined && before.party_id !== search.party_id)
      counting.leaveParty(invoice.customer_id, before.party_id)
  }
  return new Set(changed.map(keyOf)).size
}

interface Stamped extends InvoiceRecord {
  observed_at: number
}

/** A record with the texts that are stored of it. */
interface Row extends Stamped {
  search: SearchText
  summary: string
}

function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

function keysOf(records: readonly InvoiceRecord[]): [string[], string[]] {
  return [records.map(({ invoice }) => invoice.customer_id), records.map(({ invoice }) => invoice.id)]
}

type StoredRow = InvoiceKey & {
  summary: string
  party_id: number
  own_text: string
  issued_at: number
  observed_at: number
}

async function readRows(
  client: PoolClient,
  records: readonly InvoiceRecord[],
): Promise<Map<string, StoredRow>> {
  const { rows } = await client.query<StoredRow>({
    name: 'read-rows',
    text: `
      SELECT i.customer_id, i.id, i.summary, i.party_id, convert_from(i.own_text, 'UTF8') AS own_text, i.issued_at, i.observed_at
      FROM fatura.invoices i JOIN unnest($1::text[], $2::text[]) AS given (customer_id, id)
        ON i.customer_id = given.customer_id AND i.id = given.id${ofCustomers(client, 'i.customer_id', '$1')}`,
    values: keysOf(records),
  })
  return new Map(rows.map(row => [keyOf(row), row]))
}

/** Seen as it is stored: only when it was seen changes. */
async function touchRows(client: PoolClient, records: readonly Stamped[]): Promise<void> {
  if (records.length === 0) return
  await client.query({
    name: 'touch-rows',
    text: `
      UPDATE fatura.invoices AS stored SET observed_at = greatest(stored.observed_at, given.observed_at)
      FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (customer_id, id, observed_at)
      WHERE stored.customer_id = given.customer_id AND stored.id = given.id
        ${ofCustomers(client, 'stored.customer_id', '$1')}`,
    values: [...keysOf(records), records.map(({ observed_at }) => observed_at)],
  })
}

/** Each key once, the last one given; and always in one order, so that two writers cannot deadlock. */
function inKeyOrder<Given extends InvoiceRecord>(records: readonly Given[]): Given[] {
  const byKey = new Map(records.map(record => [`${record.invoice.customer_id} ${record.invoice.id}`, record]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record)
}

async function saveRows(client: PoolClient, rows: readonly Row[]): Promise<void> {
  await insertRows(
    client,
    rowInsertion,
    rows.map(({ invoice, search, summary, observed_at }) => [
      invoice.customer_id,
      invoice.id,
      Date.parse(invoice.issued_at),
      invoice.status,
      invoice.ix_status,
      search.party_id,
      search.own,
      summary,
      observed_at,
    ]),
  )
}

const rowInsertion: Insertion = {
  into: 'fatura.invoices',
  columns: {
    customer_id: 'text',
    id: 'text',
    issued_at: 'bigint',
    status: 'text',
    ix_status: 'text',
    party_id: 'bigint',
    own_text: 'utf8',
    summary: 'text',
    observed_at: 'bigint',
  },
  onConflict: `(customer_id, id) DO UPDATE SET
    issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
    party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
    observed_at = excluded.observed_at
    WHERE stored.observed_at <= excluded.observed_at`,
}

const lineInsertion = {
  into: 'fatura.invoice_lines',
  columns: { customer_id: 'text', invoice_id: 'text', lines: 'text' },
  onConflict:
    '(customer_id, invoice_id) DO UPDATE SET lines = excluded.lines WHERE stored.lines <> excluded.lines',
  returning: 'customer_id, invoice_id AS id',
} as const

function saveLines(client: PoolClient, records: readonly InvoiceRecord[]): Promise<InvoiceKey[]> {
  return insertRows(
    client,
    lineInsertion,
    records.map(({ invoice, lines }) => [invoice.customer_id, invoice.id, serializeLines(lines ?? [])]),
  )
}

async function deleteLines(client: PoolClient, records: readonly InvoiceRecord[]): Promise<InvoiceKey[]> {
  if (records.length === 0) return []
  const { rows } = await client.query<InvoiceKey>({
    name: 'delete-lines',
    text: `
      DELETE FROM fatura.invoice_lines AS stored
      USING unnest($1::text[], $2::text[]) AS gone (customer_id, id)
      WHERE stored.customer_id = gone.customer_id AND stored.invoice_id = gone.id
        ${ofCustomers(client, 'stored.customer_id', '$1')}
      RETURNING stored.customer_id, stored.invoice_id AS id`,
    values: keysOf(records),
  })
  return rows
}

/** Says whether there was such an invoice. */
export async function deleteInvoice(
  client: PoolClient,
  counting: Counting,
  customerId: string,
  invoiceId: string,
  observedAt: number,
): Promise<boolean> {
  const wasThere = await removeInvoice(client, counting, customerId, invoiceId)
  await saveTombstone(createDb(client, true), customerId, invoiceId, observedAt)
  return wasThere
}

/** Says whether there was such an invoice. That it is gone is not remembered. */
export async function removeInvoice(
  client: PoolClient,
  counting: Counting,
  customerId: string,
  invoiceId: string,
): Promise<boolean> {
  const key = [customerId, invoiceId]
  await counting.lock([customerId])
  const { rows } = await client.query<{ issued_at: number; party_id: number }>(
    'DELETE FROM fatura.invoices WHERE customer_id = $1 AND id = $2 RETURNING issued_at, party_id',
    key,
  )
  await client.query('DELETE FROM fatura.invoice_lines WHERE customer_id = $1 AND invoice_id = $2', key)
  await deleteLink(createDb(client, true), customerId, invoiceId)
  for (const { issued_at, party_id } of rows) {
    counting.note(customerId, issued_at)
    counting.leaveParty(customerId, party_id)
  }
  return rows.length !== 0
}

/** Takes a lock for each customer, always in one order, so that two writers neither cross nor deadlock. */
export async function findKnown(client: PoolClient, keys: readonly InvoiceKey[]): Promise<KnownInvoice[]> {
  const customers = [...new Set(keys.map(({ customer_id }) => customer_id))].sort()
  await client.query(
    'SELECT pg_advisory_xact_lock(hashtextextended(customer_id, 0)) FROM unnest($1::text[]) AS given (customer_id)',
    [customers],
  )
  const { rows } = await client.query<Omit<KnownInvoice, 'claim'> & { claim: string | null }>(
    `SELECT i.customer_id, i.id, i.summary, i.observed_at, l.claim
     FROM unnest($1::text[], $2::text[]) AS given (customer_id, id)
     JOIN fatura.invoices i ON i.customer_id = given.customer_id AND i.id = given.id${ofCustomers(client, 'i.customer_id', '$1')}
     LEFT JOIN fatura.links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
     UNION ALL
     SELECT t.customer_id, t.id, NULL, t.observed_at, NULL
     FROM unnest($1::text[], $2::text[]) AS given (customer_id, id)
     JOIN fatura.tombstones t ON t.customer_id = given.customer_id AND t.id = given.id${ofCustomers(client, 't.customer_id', '$1')}
     WHERE NOT EXISTS (SELECT FROM fatura.invoices i WHERE i.customer_id = t.customer_id AND i.id = t.id)`,
    [keys.map(({ customer_id }) => customer_id), keys.map(({ id }) => id)],
  )
  return rows.map(row => ({ ...row, claim: row.claim === null ? null : JSON.parse(row.claim) }))
}
