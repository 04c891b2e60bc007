/**
 * Holds both sides of a comparison with a SAF-T file in a temporary SQLite database. A month of any size needs only a few megabytes of
 * memory.
 */
import { DatabaseSync } from 'node:sqlite'
import { printedTypeOf } from '../../domain/document.ts'
import type { Invoice } from '../../domain/invoice.ts'
import type { DatedDocument } from '../../store/document-store.ts'
import type { SaftDocument } from './read-saft.ts'
import type { Unlinked } from './unlinked.ts'

export interface Pair {
  filed: SaftDocument
  /** Tax ID of the file's customer. Null when the file has no such customer. */
  taxId: string | null
  stored: StoredSide | null
}

export interface StoredSide extends Omit<DatedDocument, 'invoices'> {
  invoice: Invoice | null
  /** Set only when the document is related to no invoice. */
  unlinked: Unlinked | null
}

/** Whether the file should contain a document. A `maybe` document may be missing without a report. */
const expectations = ['no', 'yes', 'maybe'] as const
export type Expectation = (typeof expectations)[number]

export type SaftTables = ReturnType<typeof createSaftTables>

/** Credit and debit notes certify no invoice, and the store does not hold them. */
const notCertifying = "('NC', 'ND')"

/** Codes of document types in the file. Other types have several spellings and are not compared. */
const codes: Readonly<Record<string, string>> = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
}

const schema = `
  PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000; PRAGMA temp_store = FILE;
  CREATE TABLE customers (id TEXT PRIMARY KEY, tax_id TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE filed (position INTEGER PRIMARY KEY, number TEXT NOT NULL, series TEXT, n INTEGER, of_series TEXT NOT NULL,
    atcud TEXT, type TEXT NOT NULL, is_sale INTEGER NOT NULL, customer TEXT NOT NULL, body TEXT NOT NULL, stored_id INTEGER);
  CREATE TABLE stored (id INTEGER PRIMARY KEY, of_series TEXT, code TEXT, atcud TEXT, is_expected INTEGER NOT NULL,
    body TEXT NOT NULL);
  BEGIN`

const matching = `
  CREATE INDEX stored_by_atcud ON stored (atcud) WHERE atcud IS NOT NULL;
  CREATE INDEX stored_by_series ON stored (of_series) WHERE of_series IS NOT NULL;
  UPDATE filed SET stored_id = coalesce(
    (SELECT id FROM stored s WHERE s.atcud = filed.atcud
     ORDER BY is_expected = 1 DESC, is_expected = 2 DESC, id LIMIT 1),
    (SELECT id FROM stored s WHERE s.of_series = filed.of_series AND (s.code IS NULL OR s.code = filed.type)
     ORDER BY is_expected = 1 DESC, is_expected = 2 DESC, id LIMIT 1))
  WHERE is_sale = 1 AND type NOT IN ${notCertifying};
  CREATE INDEX filed_by_stored ON filed (stored_id) WHERE stored_id IS NOT NULL;
  CREATE INDEX filed_by_series ON filed (series, n) WHERE n IS NOT NULL;
  CREATE INDEX filed_by_number ON filed (number);
  COMMIT`

export function createSaftTables() {
  const db = new DatabaseSync('')
  db.exec(schema)
  const insertCustomer = db.prepare('INSERT OR REPLACE INTO customers VALUES (?, ?)')
  const insertFiled = db.prepare(
    'INSERT INTO filed (number, series, n, of_series, atcud, type, is_sale, customer, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const insertStored = db.prepare('INSERT OR REPLACE INTO stored VALUES (?, ?, ?, ?, ?, ?)')
  const read = <Row>(sql: string) => db.prepare(sql).iterate() as Iterable<Row>
  const is = (sql: string) => {
    const statement = db.prepare(sql)
    return (id: number) => statement.get(id) !== undefined
  }
  return {
    addCustomer: (id: string, taxId: string) => insertCustomer.run(id, taxId),
    addFiled(document: SaftDocument) {
      const { number, atcud, type, section, customer } = document
      const [, series = null, n = null] = /^(.*)\/(\d{1,15})$/.exec(number) ?? []
      insertFiled.run(
        ...[number, series, n === null ? null : Number(n), withoutCode(number), bareAtcud(atcud), type],
        ...[section === 'SalesInvoices' ? 1 : 0, customer, JSON.stringify(document)],
      )
    },
    addStored(side: StoredSide, expectation: Expectation) {
      const { id, series_number = null, atcud = null } = side.document
      const code = codes[printedTypeOf(side.document)] ?? null
      const ofSeries = series_number === null ? null : withoutCode(series_number)
      insertStored.run(
        ...[id, ofSeries, code, bareAtcud(atcud), expectations.indexOf(expectation), JSON.stringify(side)],
      )
    },
    /**
     * Assigns a stored document to each document of the file, by ATCUD and then by series and number. Call once, after all documents were
     * added.
     */
    match: () => db.exec(matching),
    *readPairs(): Iterable<Pair> {
      const rows = read<{ filed: string; taxId: string | null; stored: string | null }>(
        `SELECT f.body AS filed, c.tax_id AS taxId, s.body AS stored
         FROM filed f LEFT JOIN customers c ON c.id = f.customer LEFT JOIN stored s ON s.id = f.stored_id
         WHERE f.is_sale = 1 AND f.type NOT IN ${notCertifying} ORDER BY f.position`,
      )
      for (const { filed, taxId, stored } of rows)
        yield { filed: JSON.parse(filed), taxId, stored: stored === null ? null : JSON.parse(stored) }
    },
    /** Stored documents that the file should contain and does not. */
    *readUnfiled(): Iterable<StoredSide> {
      const rows = read<{ body: string }>(
        `SELECT body FROM stored s WHERE is_expected = 1 AND NOT EXISTS (SELECT 1 FROM filed WHERE stored_id = s.id) ORDER BY id`,
      )
      for (const { body } of rows) yield JSON.parse(body)
    },
    /** Missing numbers between two existing numbers of a series, such as "FT A". */
    readGaps: () =>
      read<{ series: string; from: number; to: number }>(
        `SELECT series, n + 1 AS "from", next - 1 AS "to"
         FROM (SELECT series, n, lead(n) OVER (PARTITION BY series ORDER BY n) AS next FROM filed WHERE n IS NOT NULL)
         WHERE next > n + 1`,
      ),
    readTwice: () =>
      read<{ number: string; times: number }>(
        'SELECT number, count(*) AS times FROM filed GROUP BY number HAVING count(*) > 1',
      ),
    isFiled: is('SELECT 1 FROM filed WHERE stored_id = ?'),
    /** Whether the file should or may contain the document. */
    isExpected: is('SELECT 1 FROM stored WHERE id = ? AND is_expected > 0'),
    close: () => db.close(),
  }
}

/** Removes the type's code, for example "A/123" from "FT A/123". */
export function withoutCode(number: string): string {
  return number.replace(/^\S+ /, '')
}

/** Removes the prefix "ATCUD:", which some programs write before the code. */
export function bareAtcud(atcud: string | null): string | null {
  return atcud?.replace(/^ATCUD:\s*/i, '') ?? null
}
