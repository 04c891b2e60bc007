/** Invoices in bulk: a batch is one message, on Citus one to each shard. */
import type { PoolClient } from 'pg'
import { documentColumns } from '../../document-json.ts'
import type { InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeLines, serializeSummary } from '../../invoice-json.ts'
import type { Countable } from '../read-model/counting.ts'
import { askForRest, deleteLink, linkOf, saveTombstone } from '../shared/links.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import { callAtShards } from './at-shards.ts'
import type { Counting } from './counts.ts'
import { type ListType, type ListValue, writeList } from './lists.ts'
import { searchColumns } from './search-columns.ts'
import { createDb } from './shared-db.ts'

/** The lists that fatura.save_invoices is given, in the order of its parameters. */
const givenColumns = {
  customer_id: 'text',
  id: 'text',
  issued_at: 'bigint',
  status: 'text',
  ix_status: 'text',
  currency: 'text',
  total_cents: 'bigint',
  search_text: 'joined',
  long_text: 'joined',
  search_ids: 'joined',
  summary: 'joined',
  observed_at: 'bigint',
  /** Null where the lines are not known. */
  lines: 'joined',
  /** Null where nothing is claimed, and so are the next three. */
  state: 'text',
  claimed_id: 'bigint',
  ix_id: 'bigint',
  claim: 'joined',
  document: 'joined',
  credited_cents: 'bigint',
} as const satisfies Record<string, ListType>

/** Says how many records differed from what was stored. */
export async function saveInvoices(
  client: PoolClient,
  counting: Counting,
  records: readonly InvoiceRecord[],
  observedAt: number | readonly number[],
): Promise<number> {
  const given = inListOrder(
    records.map((record, i) => ({
      ...record,
      issued_at: Date.parse(record.invoice.issued_at),
      observed_at: stampOf(observedAt, i),
    })),
  )
  await counting.lock(given.map(customerOf))
  const answers = await callAtShards<Stamped, [place: number, before: CountableRow | null][]>(
    client,
    'save_invoices',
    given,
    customerOf,
    listColumns,
  )
  let changed = 0
  for (const { some, told } of answers) {
    changed += told.length
    for (const [place, before] of told) {
      const { invoice, issued_at } = some[place - 1] as Stamped
      counting.note(invoice, before && readCountable(before), { ...invoice, issued_at })
    }
  }
  await askForRest(createDb(client, true), given)
  return changed
}

/** As fatura.save_invoices returns it. */
type CountableRow = [number, string, string | null, string, number]

function readCountable([issued_at, status, ix_status, currency, total_cents]: CountableRow): Countable {
  return { issued_at, status, ix_status, currency, total_cents }
}

interface Stamped extends InvoiceRecord {
  issued_at: number
  observed_at: number
}

function customerOf({ invoice }: InvoiceRecord): string {
  return invoice.customer_id
}

/**
 * Each key once, the last one given; a customer's after each other, as they are listed: most indexes are in that order, and then
 * grow at one place. Whoever writes has locked the customers, so no two writers deadlock, whatever the order.
 */
function inListOrder(records: readonly Stamped[]): Stamped[] {
  const byKey = new Map(records.map(record => [`${record.invoice.customer_id} ${record.invoice.id}`, record]))
  return [...byKey.values()].sort(
    (a, b) =>
      compare(a.invoice.customer_id, b.invoice.customer_id) ||
      b.issued_at - a.issued_at ||
      compare(b.invoice.id, a.invoice.id),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** All that is stored of records, a list for each column. */
function listColumns(records: readonly Stamped[]): (string | null)[] {
  const rows = records.map((record): Record<keyof typeof givenColumns, ListValue> => {
    const { invoice, lines, claim, document = null, issued_at, observed_at } = record
    return {
      customer_id: invoice.customer_id,
      id: invoice.id,
      issued_at,
      status: invoice.status,
      ix_status: invoice.ix_status,
      currency: invoice.currency,
      total_cents: invoice.total_cents,
      ...searchColumns(invoice, document),
      summary: serializeSummary(invoice),
      observed_at,
      lines: lines === null ? null : serializeLines(lines),
      ...linkOf(invoice, claim),
      ...documentColumns(document),
    }
  })
  return columnNames.map(name =>
    writeList(
      givenColumns[name],
      rows.map(row => row[name]),
    ),
  )
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
  const { rows } = await client.query<Countable>(
    `DELETE FROM fatura.invoices WHERE customer_id = $1 AND id = $2
     RETURNING issued_at, status, ix_status, currency, total_cents`,
    key,
  )
  await client.query('DELETE FROM fatura.invoice_lines WHERE customer_id = $1 AND invoice_id = $2', key)
  await deleteLink(createDb(client, true), customerId, invoiceId)
  for (const row of rows) counting.note({ customer_id: customerId, id: invoiceId }, row, null)
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
    told.map(([customer_id, id, summary, observed_at, claim, document]) => {
      return {
        ...{ customer_id, id, summary, observed_at, document },
        claim: claim === null ? null : JSON.parse(claim),
      }
    }),
  )
}

type KnownRow = [
  customer_id: string,
  id: string,
  summary: string | null,
  observed_at: number,
  claim: string | null,
  document: string | null,
]
