/**
 * Saves rows of invoices with their lines, payment IDs and account entries. The customers are locked, so the stored rows do not change
 * meanwhile.
 */
import type { StoredEntry } from '../../domain/account.ts'
import type { InvoiceKey, InvoiceRecord } from '../../domain/invoice.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import type { Countable } from '../sql/counters.ts'
import type { Insertion } from '../sql/db.ts'
import { type ComparedRow, type InvoiceRow, isOtherRow } from '../sql/invoice-row.ts'
import { keyOf } from '../sql/links.ts'
import type { PostgresDb } from './shared-db.ts'

export interface Given {
  record: InvoiceRecord
  row: InvoiceRow
  observed_stamp: number
  answered_stamp: number
}

type StoredRow = Countable & InvoiceKey & ComparedRow & Pick<InvoiceRow, 'lines'> & { observed_stamp: number }

interface Saved extends Given {
  before: StoredRow | null
  isChanged: boolean
}

const columns = {
  ...({ customer_id: 'text', id: 'text', issued_at: 'bigint', status: 'text', ix_status: 'text' } as const),
  ...({ currency: 'text', total_cents: 'bigint', summary: 'text' } as const),
  ...({ observed_stamp: 'bigint', answered_stamp: 'bigint' } as const),
  ...({ search_text: 'bytea', long_text: 'bytea', search_ids: 'bytea' } as const),
  ...({ document: 'text', credited_cents: 'bigint', payment: 'text', due_date: 'text' } as const),
  ...({ to_pay_cents: 'bigint', in_favour_cents: 'bigint' } as const),
  ...({ expanded_document: 'text', expanded_payment: 'text' } as const),
}
const columnNames = Object.keys(columns) as (keyof typeof columns)[]

const rowInsertion: Insertion = {
  into: 'fatura.invoices',
  columns,
  rest: `ON CONFLICT (customer_id, id) DO UPDATE SET ${columnNames
    .slice(2)
    .map(name => `${name} = excluded.${name}`)
    .join(', ')}`,
}

const linesInsertion: Insertion = {
  into: 'fatura.invoice_lines',
  columns: { customer_id: 'text', invoice_id: 'text', lines: 'text' },
  rest: 'ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines',
}

const paymentInsertion: Insertion = {
  into: 'fatura.invoice_payments',
  columns: { customer_id: 'text', invoice_id: 'text', payment_id: 'text' },
  rest: '',
}

const entryInsertion: Insertion = {
  into: 'fatura.account_entries',
  columns: {
    ...({ customer_id: 'text', invoice_id: 'text', place: 'bigint', day: 'text' } as const),
    ...({ currency: 'text', cents: 'bigint', entry: 'text' } as const),
  },
  rest: '',
}

/** Saves rows. A row that was observed later stays unchanged with its lines, and is not returned. An equal row gets only the new stamps. */
export async function saveRows(db: PostgresDb, given: readonly Given[]): Promise<Saved[]> {
  const stored = await findStored(db, given)
  const compared = given.flatMap(each => {
    const before = stored.get(keyOf(each.row)) ?? null
    return before !== null && before.observed_stamp > each.observed_stamp ? [] : compare(each, before)
  })
  const others = compared.filter(({ isOther }) => isOther)
  await saveOthers(db, others)
  await saveEntries(
    db,
    rowsOf(others),
    others.flatMap(({ row, before }) => (before === null ? [] : row)),
  )
  await updateStamps(
    db,
    compared.filter(
      ({ isOther, before, observed_stamp }) => !isOther && before?.observed_stamp !== observed_stamp,
    ),
  )
  await saveLines(
    db,
    compared.filter(({ hasOtherLines }) => hasOtherLines),
  )
  await savePayments(
    db,
    compared.filter(({ hasOtherPayment }) => hasOtherPayment),
  )
  return compared
}

function compare(given: Given, before: StoredRow | null) {
  const { row } = given
  const hasOtherPayment = before?.payment !== row.payment
  const isOther = isOtherRow(row, before)
  const hasOtherLines = (before?.lines ?? null) !== row.lines
  return { ...given, before, isOther, hasOtherLines, hasOtherPayment, isChanged: isOther || hasOtherLines }
}

const keysOf = (rows: readonly InvoiceRow[]) => [
  rows.map(({ customer_id }) => customer_id),
  rows.map(({ id }) => id),
]
const rowsOf = (given: readonly Given[]) => given.map(({ row }) => row)

async function findStored(db: PostgresDb, given: readonly Given[]): Promise<Map<string, StoredRow>> {
  const rows = await db.query<StoredRow>(
    `SELECT i.customer_id, i.id, i.observed_stamp, i.issued_at, i.status, i.ix_status, i.currency, i.total_cents,
       convert_from(coalesce(i.search_text, i.long_text), 'UTF8') AS search_text,
       convert_from(i.search_ids, 'UTF8') AS search_ids, i.summary, i.document, i.payment, l.lines
     FROM unnest($1::text[], $2::text[]) AS given (customer_id, id)
     JOIN fatura.invoices i ON i.customer_id = given.customer_id AND i.id = given.id
     LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
     WHERE ${ofGivenCustomers(db, 'i')}`,
    keysOf(rowsOf(given)),
  )
  return new Map(rows.map(row => [keyOf(row), row]))
}

/** Condition that leads Citus to the shards of the given customers alone. */
const ofGivenCustomers = (db: PostgresDb, table: string) =>
  db.isCitus ? `${table}.customer_id = ANY ($1)` : 'true'

async function saveOthers(db: PostgresDb, given: readonly Given[]): Promise<void> {
  const rows = given.map(({ row, observed_stamp, answered_stamp }) => {
    return { ...row, ...splitText(row), observed_stamp, answered_stamp }
  })
  await db.insert(
    rowInsertion,
    rows.map(row => columnNames.map(name => row[name])),
  )
}

async function updateStamps(db: PostgresDb, given: readonly Given[]): Promise<void> {
  if (given.length === 0) return
  await db.query(
    `UPDATE fatura.invoices AS stored SET observed_stamp = given.observed_stamp, answered_stamp = given.answered_stamp
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
       AS given (customer_id, id, observed_stamp, answered_stamp)
     WHERE stored.customer_id = given.customer_id AND stored.id = given.id AND ${ofGivenCustomers(db, 'stored')}`,
    [
      ...keysOf(rowsOf(given)),
      given.map(({ observed_stamp }) => observed_stamp),
      given.map(({ answered_stamp }) => answered_stamp),
    ],
  )
}

async function saveLines(db: PostgresDb, given: readonly Given[]): Promise<void> {
  const [known, unknown] = [true, false].map(isKnown =>
    given.filter(({ row }) => (row.lines !== null) === isKnown),
  ) as [Given[], Given[]]
  await db.insert(
    linesInsertion,
    known.map(({ row }) => [row.customer_id, row.id, row.lines]),
  )
  await deleteOf(db, 'invoice_lines', rowsOf(unknown))
}

/** Writes the account entries of `rows`, and removes the former entries of the rows in `former`. */
export async function saveEntries(
  db: PostgresDb,
  rows: readonly InvoiceRow[],
  former: readonly InvoiceRow[],
): Promise<void> {
  await deleteOf(db, 'account_entries', former)
  await db.insert(
    entryInsertion,
    rows.flatMap(({ customer_id, id, entries }) =>
      (JSON.parse(entries) as StoredEntry[]).map((entry, place) => [customer_id, id, place, ...entry]),
    ),
  )
}

async function savePayments(
  db: PostgresDb,
  given: readonly (Given & { before: StoredRow | null })[],
): Promise<void> {
  await deleteOf(
    db,
    'invoice_payments',
    given.flatMap(({ row, before }) => (before === null ? [] : row)),
  )
  await db.insert(
    paymentInsertion,
    given.flatMap(({ row }) =>
      (JSON.parse(row.payment) as PaymentFacts).payments.map(({ id }) => [row.customer_id, row.id, id]),
    ),
  )
}

async function deleteOf(
  db: PostgresDb,
  table: 'invoice_lines' | 'invoice_payments' | 'account_entries',
  rows: readonly InvoiceRow[],
): Promise<void> {
  if (rows.length === 0) return
  await db.query(
    `DELETE FROM fatura.${table} AS stored USING unnest($1::text[], $2::text[]) AS given (customer_id, id)
     WHERE stored.customer_id = given.customer_id AND stored.invoice_id = given.id
       AND ${ofGivenCustomers(db, 'stored')}`,
    keysOf(rows),
  )
}

/** Maximum size of an index entry in bytes of UTF-8. PostgreSQL allows 2,704 bytes, of which about 50 are overhead. */
const longestEntry = 2_600

/** Returns the search columns as bytes. A text that is too long for the index goes into the column `long_text`. */
export function splitText({ customer_id, id, ix_status, search_text, search_ids }: InvoiceRow) {
  const entry = customer_id + id + (ix_status ?? '') + search_text + search_ids
  const isLong = entry.length * 3 > longestEntry && Buffer.byteLength(entry) > longestEntry
  const [text, ids] = [Buffer.from(search_text), Buffer.from(search_ids)]
  return isLong
    ? { search_text: null, long_text: text, search_ids: ids }
    : { search_text: text, long_text: null, search_ids: ids }
}
