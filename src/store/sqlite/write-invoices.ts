/** The statements that write invoices, prepared once; they run within a transaction of the writer's. */
import type { InvoiceRecord } from '../../domain/invoice.ts'
import type { Countable } from '../sql/counting.ts'
import type { Counting } from '../sql/counts.ts'
import type { Db } from '../sql/db.ts'
import { type InvoiceRow, toRow } from '../sql/invoice-row.ts'
import { saveLinks } from '../sql/links.ts'
import type { EngineWrites } from '../sql/transaction-writes.ts'
import { type KnownInvoice, stampOf } from '../store.ts'
import { customerWrites } from './counts.ts'
import type { StoreFile } from './database.ts'
import { translate } from './failures.ts'

const columns =
  `customer_id, id, issued_at, status, ix_status, currency, total_cents, search_text, search_ids, summary,
  document, credited_cents, payment, due_date, to_pay_cents, in_favour_cents, expanded_document,
  expanded_payment, observed_at, answered_at`.split(/,\s+/) as (keyof InvoiceRow | keyof Moments)[]

export function engineWrites(db: StoreFile, shared: Db): EngineWrites {
  const attempt = <T>(work: () => T): T => translate(db.path, work)
  const insertInvoice = db.prepare(`
    INSERT INTO invoices (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ON CONFLICT (customer_id, id) DO UPDATE SET ${columns
      .slice(2)
      .map(name => `${name} = excluded.${name}`)
      .join(', ')}`)
  const touchInvoice = db.prepare(
    'UPDATE invoices SET observed_at = ?3, answered_at = ?4 WHERE customer_id = ?1 AND id = ?2',
  )
  const findInvoice = db.prepare(`
    SELECT summary, search_text, search_ids, observed_at, document, payment, issued_at, status,
      ix_status, currency, total_cents
    FROM invoices
    WHERE customer_id = ?1 AND id = ?2`)
  const findKnown = db.prepare(`
    SELECT summary, observed_at, answered_at, claim, document, payment FROM invoices
    LEFT JOIN links ON links.customer_id = ?1 AND invoice_id = ?2 WHERE invoices.customer_id = ?1 AND id = ?2`)
  const findTombstone = db.prepare(
    'SELECT observed_at, answered_at FROM tombstones WHERE customer_id = ?1 AND id = ?2',
  )
  const saveLines = db.prepare(`
    INSERT INTO invoice_lines (customer_id, invoice_id, lines) VALUES (?1, ?2, ?3)
    ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines WHERE lines <> excluded.lines`)
  const deleteLines = db.prepare('DELETE FROM invoice_lines WHERE customer_id = ?1 AND invoice_id = ?2')
  const deletePayments = db.prepare('DELETE FROM invoice_payments WHERE customer_id = ?1 AND invoice_id = ?2')
  const savePayments = db.prepare(`
    INSERT INTO invoice_payments (customer_id, invoice_id, payment_id)
    SELECT ?1, ?2, value ->> '$.id' FROM json_each(?3, '$.payments')`)
  const deleteEntries = db.prepare('DELETE FROM account_entries WHERE customer_id = ?1 AND invoice_id = ?2')
  const insertEntries = db.prepare(`
    INSERT INTO account_entries (customer_id, invoice_id, place, day, currency, cents, entry)
    SELECT ?1, ?2, key, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?3)`)
  const updateDocument = db.prepare(`
    UPDATE invoices SET ix_status = ?3, search_text = ?4, search_ids = ?5, summary = ?6, document = ?7, credited_cents = ?8,
      in_favour_cents = ?9, expanded_document = ?10, expanded_payment = ?11
    WHERE customer_id = ?1 AND id = ?2`)

  function saveEntries({ customer_id, id, entries }: InvoiceRow, isNew: boolean): void {
    if (!isNew) deleteEntries.run(customer_id, id)
    insertEntries.run(customer_id, id, entries)
  }

  /** Returns whether anything but the moment of its observation changed; null when a later observation is stored. */
  function saveOne(counting: Counting, row: InvoiceRow, moments: Moments): boolean | null {
    const { observed_at, answered_at } = moments
    const { customer_id, id, search_text, search_ids, summary, lines } = row
    const stored = findInvoice.get(customer_id, id) as StoredRow | undefined
    if (stored !== undefined && stored.observed_at > observed_at) return null
    const isChanged =
      stored?.summary !== summary ||
      stored.search_text !== search_text ||
      stored.search_ids !== search_ids ||
      stored.document !== row.document ||
      stored.payment !== row.payment
    if (stored?.payment !== row.payment) {
      if (stored !== undefined) deletePayments.run(customer_id, id)
      savePayments.run(customer_id, id, row.payment)
    }
    if (isChanged) {
      const given = { ...row, ...moments }
      insertInvoice.run(...columns.map(name => given[name]))
      saveEntries(row, stored === undefined)
    } else touchInvoice.run(customer_id, id, observed_at, answered_at)
    // An invoice that was not there has no lines either.
    const changes =
      lines !== null
        ? saveLines.run(customer_id, id, lines).changes
        : stored === undefined
          ? 0
          : deleteLines.run(customer_id, id).changes
    if (!isChanged && changes === 0) return false
    counting.note(row, stored ?? null, row)
    return true
  }

  return {
    ...customerWrites(shared),
    async saveInvoices(counting, records, observedAt, answeredAt) {
      await counting.lock(records.map(({ invoice }) => invoice.customer_id))
      const applied: InvoiceRecord[] = []
      let changed = 0
      attempt(() => {
        for (const [index, record] of records.entries()) {
          const moments = { observed_at: stampOf(observedAt, index), answered_at: stampOf(answeredAt, index) }
          const isChanged = saveOne(counting, toRow(record), moments)
          if (isChanged !== null) applied.push(record)
          if (isChanged) changed++
        }
      })
      await saveLinks(shared, applied)
      return changed
    },
    async findKnown(keys) {
      return attempt(() =>
        keys.flatMap(({ customer_id, id }): KnownInvoice[] => {
          const key = { customer_id, id }
          const stored = findKnown.get(customer_id, id) as KnownRow | undefined
          if (stored !== undefined)
            return [{ ...key, ...stored, claim: stored.claim === null ? null : JSON.parse(stored.claim) }]
          const gone = findTombstone.get(customer_id, id) as Moments | undefined
          return gone === undefined ? [] : [{ ...key, ...gone, ...nothingKnown }]
        }),
      )
    },
    async updateDocuments(rows) {
      attempt(() => {
        for (const row of rows) {
          updateDocument.run(
            ...[row.customer_id, row.id, row.ix_status, row.search_text, row.search_ids],
            ...[row.summary, row.document, row.credited_cents, row.in_favour_cents],
            ...[row.expanded_document, row.expanded_payment],
          )
          saveEntries(row, false)
        }
      })
    },
  }
}

interface Moments {
  observed_at: number
  answered_at: number
}

type StoredRow = Countable &
  Pick<InvoiceRow, 'summary' | 'search_text' | 'search_ids' | 'document' | 'payment'> & {
    observed_at: number
  }

type KnownRow = Pick<InvoiceRow, 'summary' | 'document' | 'payment'> & Moments & { claim: string | null }

const nothingKnown = { summary: null, claim: null, document: null, payment: null }
