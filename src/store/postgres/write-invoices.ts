/** Invoices in bulk: a batch is one message, on Citus one to each shard. */
import type { PoolClient } from 'pg'
import type { InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeLines, serializeSummary } from '../../invoice-json.ts'
import { searchText } from '../read-model/search.ts'
import { askForClients, deleteLink, linkOf, saveTombstone } from '../shared/links.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import { callAtShards } from './at-shards.ts'
import type { Counting } from './counts.ts'
import { createDb } from './shared-db.ts'
import { givenColumns } from './write-functions.ts'

/** Says how many records differed from what was stored. */
export async function saveInvoices(
  client: PoolClient,
  counting: Counting,
  records: readonly InvoiceRecord[],
  observedAt: number | readonly number[],
): Promise<number> {
  const given = inKeyOrder(records.map((record, i) => ({ ...record, observed_at: stampOf(observedAt, i) })))
  await counting.lock(given.map(customerOf))
  const answers = await callAtShards<Stamped, [place: number, issuedBefore: number | null][]>(
    client,
    'save_invoices',
    given,
    customerOf,
    listColumns,
  )
  let changed = 0
  for (const { some, told } of answers) {
    changed += told.length
    for (const [place, issuedBefore] of told) {
      const { invoice } = some[place - 1] as Stamped
      counting.note(
        invoice.customer_id,
        Date.parse(invoice.issued_at),
        ...(issuedBefore === null ? [] : [issuedBefore]),
      )
    }
  }
  await askForClients(createDb(client, true), given)
  return changed
}

interface Stamped extends InvoiceRecord {
  observed_at: number
}

function customerOf({ invoice }: InvoiceRecord): string {
  return invoice.customer_id
}

/** Each key once, the last one given; and always in one order, so that two writers cannot deadlock. */
function inKeyOrder<Given extends InvoiceRecord>(records: readonly Given[]): Given[] {
  const byKey = new Map(records.map(record => [`${record.invoice.customer_id} ${record.invoice.id}`, record]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record)
}

/** All that is stored of records, a list for each column. */
function listColumns(records: readonly Stamped[]): unknown[] {
  const rows = records.map((record): Record<keyof typeof givenColumns, unknown> => {
    const { invoice, lines, claim, observed_at } = record
    const { party_id, party, own } = searchText(invoice)
    return {
      customer_id: invoice.customer_id,
      id: invoice.id,
      issued_at: Date.parse(invoice.issued_at),
      status: invoice.status,
      ix_status: invoice.ix_status,
      party_id,
      party,
      own_text: own,
      summary: serializeSummary(invoice),
      observed_at,
      lines: lines === null ? null : serializeLines(lines),
      ...linkOf(invoice, claim),
    }
  })
  return columnNames.map(name => rows.map(row => row[name]))
}

const columnNames = Object.keys(givenColumns) as (keyof typeof givenColumns)[]

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
  const answers = await callAtShards<InvoiceKey, KnownRow[]>(
    client,
    'find_known',
    keys,
    ({ customer_id }) => customer_id,
    some => [some.map(({ customer_id }) => customer_id), some.map(({ id }) => id)],
  )
  return answers.flatMap(({ told }) =>
    told.map(([customer_id, id, summary, observed_at, claim]) => {
      return { customer_id, id, summary, observed_at, claim: claim === null ? null : JSON.parse(claim) }
    }),
  )
}

type KnownRow = [
  customer_id: string,
  id: string,
  summary: string | null,
  observed_at: number,
  claim: string | null,
]
