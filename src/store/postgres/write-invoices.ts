/** Invoices and customers in bulk: a batch is one message, on Citus one to each shard. */
import type { InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import type { Value } from '../contents.ts'
import { type Countable, changeColumns } from '../read-model/counting.ts'
import { type InvoiceRow, toRow } from '../read-model/invoice-row.ts'
import type { GrownCustomer, LockedCustomer } from '../shared/counts.ts'
import { askForRest, keyOf, linkOf } from '../shared/links.ts'
import type { EngineWrites } from '../shared/transaction-writes.ts'
import { stampOf } from '../store.ts'
import { callAtShards } from './at-shards.ts'
import { type ListType, writeList } from './lists.ts'
import type { PostgresDb } from './shared-db.ts'

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
  payment: 'joined',
  due_date: 'text',
  to_pay_cents: 'bigint',
  in_favour_cents: 'bigint',
  /** Null where nothing is claimed. */
  number: 'text',
} as const satisfies Record<string, ListType>

interface Given {
  record: InvoiceRecord
  row: InvoiceRow
  observed_at: number
}

const customerOf = ({ row }: Given) => row.customer_id

/** `customer_id`, `id`, `summary`, `observed_at`, `claim`, `document` and `payment`. */
type KnownRow = [string, string, string | null, number, string | null, string | null, string | null]

const relinkedColumns = [
  ...(['customer_id', 'id', 'ix_status', 'search_text', 'long_text', 'search_ids'] as const),
  ...(['summary', 'document', 'credited_cents', 'in_favour_cents'] as const),
]

/** Nothing is updated but the lock. */
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
    async saveCustomers(customers, batch) {
      const large: string[] = []
      for (let at = 0; at < customers.length; at += customersAtOnce) {
        const answers = await callAtShards<GrownCustomer, string[]>(
          db,
          'count_customers',
          customers.slice(at, at + customersAtOnce),
          ({ customerId }) => customerId,
          some => {
            const changes = some.flatMap(({ changes }) => changes)
            return [
              some.map(({ customerId }) => customerId),
              some.map(({ added }) => added),
              some.map(({ version }) => version),
              ...Object.values(changeColumns).map((type, i) =>
                writeList(
                  type,
                  changes.map(change => change[i] ?? null),
                ),
              ),
              batch,
              Date.now(),
            ]
          },
        )
        large.push(...answers.flatMap(({ told }) => told))
      }
      return large
    },
    async saveInvoices(counting, records, observedAt) {
      const given = inListOrder(
        records.map((record, i) => ({ record, row: toRow(record), observed_at: stampOf(observedAt, i) })),
      )
      await counting.lock(given.map(customerOf))
      const answers = await callAtShards<Given, [place: number, before: CountableRow | null][]>(
        db,
        'save_invoices',
        given,
        customerOf,
        listColumns,
      )
      let changed = 0
      for (const { some, told } of answers) {
        changed += told.length
        for (const [place, before] of told) {
          const { row } = some[place - 1] as Given
          counting.note(row, before && readCountable(before), row)
        }
      }
      await askForRest(
        db,
        given.map(({ record }) => record),
      )
      return changed
    },
    /** Takes a lock for each customer, always in one order, so that two writers neither cross nor deadlock. */
    async findKnown(keys) {
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
      return answers.flatMap(({ told }) =>
        told.map(([customer_id, id, summary, observed_at, claim, document, payment]) => {
          return {
            customer_id,
            id,
            summary,
            observed_at,
            claim: claim && JSON.parse(claim),
            document,
            payment,
          }
        }),
      )
    },
    async updateDocuments(given) {
      const bytes = (text: string | null) => (text === null ? null : Buffer.from(text))
      // Bytes already: Citus refuses a conversion here. The last condition leads it to the shards of these customers alone.
      const rows = given.map(row => {
        const { search_text, long_text, search_ids } = splitText(row)
        return {
          ...row,
          search_text: bytes(search_text),
          long_text: bytes(long_text),
          search_ids: bytes(search_ids),
        }
      })
      await db.query(
        `UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, search_text = given.search_text,
           long_text = given.long_text, search_ids = given.search_ids, summary = given.summary,
           document = given.document, credited_cents = given.credited_cents,
           in_favour_cents = given.in_favour_cents
         FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::text[],
             $9::bigint[], $10::bigint[]) AS given (${relinkedColumns.join(', ')})
         WHERE stored.customer_id = given.customer_id AND stored.id = given.id
           ${db.isCitus ? 'AND stored.customer_id = ANY ($1)' : ''}`,
        relinkedColumns.map(name => rows.map(row => row[name])),
      )
    },
  }
}

type CountableRow = [number, Countable['status'], string | null, string, number]

function readCountable([issued_at, status, ix_status, currency, total_cents]: CountableRow): Countable {
  return { issued_at, status, ix_status, currency, total_cents }
}

/** Each key once, the last one given, in the order of lists: most indexes then grow at one place. Customers are locked: no two writers deadlock. */
function inListOrder(all: readonly Given[]): Given[] {
  const byKey = new Map(all.map(given => [keyOf(given.row), given]))
  return [...byKey.values()].sort(
    ({ row: a }, { row: b }) =>
      compare(a.customer_id, b.customer_id) || b.issued_at - a.issued_at || compare(b.id, a.id),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** In bytes of UTF-8. An index entry holds 2,704, of which some 50 are its own. */
const longestEntry = 2_600

/** A text that is too long for the index stands in a column of its own. */
function splitText({ customer_id, id, ix_status, search_text, search_ids }: InvoiceRow) {
  const entry = customer_id + id + (ix_status ?? '') + search_text + search_ids
  const isLong = entry.length * 3 > longestEntry && Buffer.byteLength(entry) > longestEntry
  return isLong
    ? { search_text: null, long_text: search_text, search_ids }
    : { search_text, long_text: null, search_ids }
}

function listColumns(given: readonly Given[]): (string | null)[] {
  const rows = given.map(
    ({ record, row, observed_at }): Record<keyof typeof givenColumns, Value> => ({
      ...row,
      ...splitText(row),
      observed_at,
      ...linkOf(record.invoice, record.claim),
    }),
  )
  return columnNames.map(name =>
    writeList(
      givenColumns[name],
      rows.map(row => row[name]),
    ),
  )
}

const columnNames = Object.keys(givenColumns) as (keyof typeof givenColumns)[]
