/** Writes invoices and customers in bulk. Each statement takes a whole batch. */
import type { InvoiceKey, InvoiceRecord } from '../../domain/invoice.ts'
import { changeColumns } from '../sql/counters.ts'
import { type InvoiceRow, toRow } from '../sql/invoice-row.ts'
import { keyOf, saveLinks } from '../sql/links.ts'
import type { EngineWrites } from '../sql/transaction-writes.ts'
import type { GrownCustomer, LockedCustomer } from '../sql/write-counters.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import { callAtShards } from './at-shards.ts'
import { saveEntries, saveRows, splitText } from './save-rows.ts'
import type { PostgresDb } from './shared-db.ts'

/** Values of a known invoice: `customer_id`, `id`, `summary`, `observed_stamp`, `answered_stamp`, `claim`, `document` and `payment`. */
type KnownRow = [string, string, string | null, number, number, string | null, string | null, string | null]

const relinkedColumns = [
  ...(['customer_id', 'id', 'ix_status', 'search_text', 'long_text', 'search_ids'] as const),
  ...(['summary', 'document', 'credited_cents', 'in_favour_cents'] as const),
  ...(['expanded_document', 'expanded_payment'] as const),
]

/** Locks the rows of customers by an update that changes no value. */
const customerLock = {
  into: 'fatura.customers',
  columns: { customer_id: 'text', version: 'bigint' },
  rest: 'ON CONFLICT (customer_id) DO UPDATE SET version = stored.version RETURNING customer_id, counted, version',
} as const

const customersAtOnce = 5_000

export function engineWrites(db: PostgresDb): EngineWrites {
  return {
    lockCustomers: customerIds =>
      db.insert<LockedCustomer>(
        customerLock,
        customerIds.map(customerId => [customerId, 0]),
      ),
    async saveCustomers(customers, commitId) {
      const large: string[] = []
      for (let at = 0; at < customers.length; at += customersAtOnce)
        large.push(...(await countCustomers(db, customers.slice(at, at + customersAtOnce), commitId)))
      return large
    },
    async saveInvoices(counters, records, observedAt, answeredAt) {
      const given = inListOrder(
        records.map((record, i) => ({
          ...{ record, row: toRow(record) },
          ...{ observed_stamp: stampOf(observedAt, i), answered_stamp: stampOf(answeredAt, i) },
        })),
      )
      await counters.lock(given.map(({ row }) => row.customer_id))
      const saved = await saveRows(db, given)
      await saveLinks(
        db,
        saved.map(({ record }) => record),
      )
      const changed = saved.filter(({ isChanged }) => isChanged)
      for (const { row, before } of changed) counters.record(row, before, row)
      return changed.length
    },
    findKnown: keys => findKnown(db, keys),
    async updateDocuments(rows) {
      await updateDocuments(db, rows)
      await saveEntries(db, rows, rows)
    },
  }
}

/** Returns the customers that have become large and have no counters. */
async function countCustomers(
  db: PostgresDb,
  customers: readonly GrownCustomer[],
  commitId: number,
): Promise<string[]> {
  const valuesOf = (some: readonly GrownCustomer[]) => {
    const changes = some.flatMap(({ changes }) => changes)
    return [
      some.map(({ customerId }) => customerId),
      some.map(({ added }) => added),
      some.map(({ version }) => version),
      ...Object.keys(changeColumns).map((_, i) => changes.map(change => change[i])),
      commitId,
      Date.now(),
    ]
  }
  const answers = await callAtShards<GrownCustomer, string[]>(
    db,
    'count_customers',
    customers,
    ({ customerId }) => customerId,
    valuesOf,
  )
  return answers.flatMap(({ result }) => result)
}

/** Locks the customers, always in the same order, so that two writers cannot deadlock. Then reads the invoices. */
async function findKnown(db: PostgresDb, keys: readonly InvoiceKey[]): Promise<KnownInvoice[]> {
  const customers = [...new Set(keys.map(({ customer_id }) => customer_id))].sort()
  await db.query(
    'SELECT pg_advisory_xact_lock(hashtextextended(customer_id, 0)) FROM unnest($1::text[]) AS given (customer_id)',
    [customers],
  )
  const answers = await callAtShards<InvoiceKey, KnownRow[]>(
    db,
    'find_known',
    keys,
    ({ customer_id }) => customer_id,
    some => [some.map(({ customer_id }) => customer_id), some.map(({ id }) => id)],
  )
  const rows = answers.flatMap(({ result }) => result)
  return rows.map(([customer_id, id, summary, observed_stamp, answered_stamp, claim, document, payment]) => ({
    ...{ customer_id, id, summary, observed_stamp, answered_stamp, document, payment },
    claim: claim && JSON.parse(claim),
  }))
}

async function updateDocuments(db: PostgresDb, given: readonly InvoiceRow[]): Promise<void> {
  const rows = given.map(row => ({ ...row, ...splitText(row) }))
  // On Citus, the last condition limits the statement to the shards of these customers.
  await db.query(
    `UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, search_text = given.search_text,
       long_text = given.long_text, search_ids = given.search_ids, summary = given.summary,
       document = given.document, credited_cents = given.credited_cents,
       in_favour_cents = given.in_favour_cents, expanded_document = given.expanded_document,
       expanded_payment = given.expanded_payment
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::text[],
         $9::bigint[], $10::bigint[], $11::text[], $12::text[]) AS given (${relinkedColumns.join(', ')})
     WHERE stored.customer_id = given.customer_id AND stored.id = given.id
       ${db.isCitus ? 'AND stored.customer_id = ANY ($1)' : ''}`,
    relinkedColumns.map(name => rows.map(row => row[name])),
  )
}

/**
 * Returns each key once, with its last record, in the order of lists. Most indexes then grow at one end. The customers are locked, so this
 * order cannot cause a deadlock.
 */
function inListOrder<Given extends { row: InvoiceRow; record: InvoiceRecord }>(
  all: readonly Given[],
): Given[] {
  const byKey = new Map(all.map(given => [keyOf(given.row), given]))
  return [...byKey.values()].sort(
    ({ row: a }, { row: b }) =>
      compare(a.customer_id, b.customer_id) || b.issued_at - a.issued_at || compare(b.id, a.id),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
