/** Writes invoices within a transaction of the writer. The statements are prepared only once. */
import type { InvoiceKey } from '../../domain/invoice.ts'
import type { Countable } from '../sql/counters.ts'
import type { Db } from '../sql/db.ts'
import { type ComparedRow, type InvoiceRow, isOtherRow, toRow } from '../sql/invoice-row.ts'
import { saveLinks } from '../sql/links.ts'
import type { EngineWrites } from '../sql/transaction-writes.ts'
import type { Counters } from '../sql/write-counters.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import type { StoreFile } from './database.ts'
import { translate } from './failures.ts'
import { customerWrites } from './write-customers.ts'

export function engineWrites(db: StoreFile, shared: Db): EngineWrites {
  const statements = prepareStatements(db)
  const attempt = <T>(work: () => T): T => translate(db.path, work)
  return {
    ...customerWrites(shared),
    async saveInvoices(counters, records, observedAt, answeredAt) {
      await counters.lock(records.map(({ invoice }) => invoice.customer_id))
      const outcomes = attempt(() =>
        records.map((record, i) => {
          const moments = { observed_stamp: stampOf(observedAt, i), answered_stamp: stampOf(answeredAt, i) }
          return saveRow(statements, counters, toRow(record), moments)
        }),
      )
      await saveLinks(
        shared,
        records.filter((_, i) => outcomes[i] !== 'overtaken'),
      )
      return outcomes.filter(outcome => outcome === 'changed').length
    },
    findKnown: async keys => attempt(() => keys.flatMap(key => findKnown(statements, key) ?? [])),
    async updateDocuments(rows) {
      attempt(() => {
        for (const row of rows) {
          statements.updateDocument.run(
            ...[row.customer_id, row.id, row.ix_status, row.search_text, row.search_ids],
            ...[row.summary, row.document, row.credited_cents, row.in_favour_cents],
            ...[row.expanded_document, row.expanded_payment],
          )
          saveEntries(statements, row, false)
        }
      })
    },
  }
}

/** Outcome of saving an invoice. `overtaken`: a later observation is stored already. `same`: only the stamps of the observation changed. */
type Outcome = 'overtaken' | 'same' | 'changed'

function saveRow(statements: Statements, counters: Counters, row: InvoiceRow, moments: Moments): Outcome {
  const { customer_id, id } = row
  const stored = (statements.findInvoice.get(customer_id, id) as StoredRow | undefined) ?? null
  if (stored !== null && stored.observed_stamp > moments.observed_stamp) return 'overtaken'
  const isOther = isOtherRow(row, stored)
  if (stored?.payment !== row.payment) savePayments(statements, row, stored === null)
  if (isOther) {
    const given = { ...row, ...moments }
    statements.saveInvoice.run(...columns.map(name => given[name]))
    saveEntries(statements, row, stored === null)
  } else statements.touchInvoice.run(customer_id, id, moments.observed_stamp, moments.answered_stamp)
  const hasOtherLines = saveLines(statements, row, stored === null)
  if (!isOther && !hasOtherLines) return 'same'
  counters.record(row, stored, row)
  return 'changed'
}

function savePayments({ deletePayments, insertPayments }: Statements, row: InvoiceRow, isNew: boolean): void {
  if (!isNew) deletePayments.run(row.customer_id, row.id)
  insertPayments.run(row.customer_id, row.id, row.payment)
}

function saveEntries({ deleteEntries, insertEntries }: Statements, row: InvoiceRow, isNew: boolean): void {
  if (!isNew) deleteEntries.run(row.customer_id, row.id)
  insertEntries.run(row.customer_id, row.id, row.entries)
}

/** Saves an invoice's lines, or deletes them when they are unknown. Returns whether the stored lines changed. */
function saveLines({ saveLines, deleteLines }: Statements, row: InvoiceRow, isNew: boolean): boolean {
  const { customer_id, id, lines } = row
  if (lines !== null) return saveLines.run(customer_id, id, lines).changes !== 0
  return !isNew && deleteLines.run(customer_id, id).changes !== 0
}

function findKnown(statements: Statements, { customer_id, id }: InvoiceKey): KnownInvoice | null {
  const key = { customer_id, id }
  const stored = statements.findKnown.get(customer_id, id) as KnownRow | undefined
  if (stored !== undefined)
    return { ...key, ...stored, claim: stored.claim === null ? null : JSON.parse(stored.claim) }
  const gone = statements.findTombstone.get(customer_id, id) as Moments | undefined
  return gone === undefined ? null : { ...key, ...gone, ...nothingKnown }
}

const columns =
  `customer_id, id, issued_at, status, ix_status, currency, total_cents, search_text, search_ids, summary,
  document, credited_cents, payment, due_date, to_pay_cents, in_favour_cents, expanded_document,
  expanded_payment, observed_stamp, answered_stamp`.split(/,\s+/) as (keyof InvoiceRow | keyof Moments)[]

type Statements = ReturnType<typeof prepareStatements>

function prepareStatements(db: StoreFile) {
  const ofInvoice = 'WHERE customer_id = ?1 AND invoice_id = ?2'
  return {
    saveInvoice: db.prepare(`
      INSERT INTO invoices (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
      ON CONFLICT (customer_id, id) DO UPDATE SET ${columns
        .slice(2)
        .map(name => `${name} = excluded.${name}`)
        .join(', ')}`),
    touchInvoice: db.prepare(
      'UPDATE invoices SET observed_stamp = ?3, answered_stamp = ?4 WHERE customer_id = ?1 AND id = ?2',
    ),
    findInvoice: db.prepare(`
      SELECT summary, search_text, search_ids, observed_stamp, document, payment, issued_at, status,
        ix_status, currency, total_cents
      FROM invoices
      WHERE customer_id = ?1 AND id = ?2`),
    findKnown: db.prepare(`
      SELECT summary, observed_stamp, answered_stamp, claim, document, payment FROM invoices
      LEFT JOIN links ON links.customer_id = ?1 AND invoice_id = ?2 WHERE invoices.customer_id = ?1 AND id = ?2`),
    findTombstone: db.prepare(
      'SELECT observed_stamp, answered_stamp FROM tombstones WHERE customer_id = ?1 AND id = ?2',
    ),
    saveLines: db.prepare(`
      INSERT INTO invoice_lines (customer_id, invoice_id, lines) VALUES (?1, ?2, ?3)
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines WHERE lines <> excluded.lines`),
    deleteLines: db.prepare(`DELETE FROM invoice_lines ${ofInvoice}`),
    deletePayments: db.prepare(`DELETE FROM invoice_payments ${ofInvoice}`),
    insertPayments: db.prepare(`
      INSERT INTO invoice_payments (customer_id, invoice_id, payment_id)
      SELECT ?1, ?2, value ->> '$.id' FROM json_each(?3, '$.payments')`),
    deleteEntries: db.prepare(`DELETE FROM account_entries ${ofInvoice}`),
    insertEntries: db.prepare(`
      INSERT INTO account_entries (customer_id, invoice_id, place, day, currency, cents, entry)
      SELECT ?1, ?2, key, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?3)`),
    updateDocument: db.prepare(`
      UPDATE invoices SET ix_status = ?3, search_text = ?4, search_ids = ?5, summary = ?6, document = ?7, credited_cents = ?8,
        in_favour_cents = ?9, expanded_document = ?10, expanded_payment = ?11
      WHERE customer_id = ?1 AND id = ?2`),
  }
}

interface Moments {
  observed_stamp: number
  answered_stamp: number
}

type StoredRow = Countable & ComparedRow & { observed_stamp: number }

type KnownRow = Pick<InvoiceRow, 'summary' | 'document' | 'payment'> & Moments & { claim: string | null }

const nothingKnown = { summary: null, claim: null, document: null, payment: null }
