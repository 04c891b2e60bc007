/**
 * What the floors and the peer read: the same invoices as the service's store, in tables of their own. A floor's row is
 * the text that is sent, its table lies in the page's order, and its totals are stored: there is nothing left to save.
 */
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { createProgress } from '../../src/cli/terminal/progress.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import { serializeSummary } from '../../src/domain/invoice-json.ts'
import { fillDatabase, type PostgresServer } from '../servers/postgres-server.ts'
import { makeRecords, type Shape } from './corpus.ts'
import { nameTables } from './data-folder.ts'
import { createPeerTable, insertPeerRows } from './peer-table.ts'
import { fillFile, makeBatches } from './seed.ts'

function* makeInvoices(shape: Shape, into: string): Generator<Invoice[]> {
  const small = { ...shape, large: [] }
  const total = shape.customers * shape.each
  const progress = createProgress('invoices')
  let done = 0
  for (const batch of makeBatches(makeRecords(small), 2_000)) {
    yield batch.map(({ invoice }) => invoice)
    done += batch.length
    progress.update(`into ${into}`, done, done / total)
  }
  progress.print(`Filled ${into}: ${done} invoices (${progress.pace(done)}).`)
}

/** The path of the SQLite floor's file. */
export function seedSqliteFloor(folder: string, shape: Shape): Promise<string> {
  return fillFile(folder, nameTables(shape), async path => {
    const db = new DatabaseSync(path)
    db.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
      CREATE TABLE rows (
        customer_id TEXT, issued_at TEXT, id TEXT, status TEXT NOT NULL, summary TEXT NOT NULL,
        PRIMARY KEY (customer_id, issued_at DESC, id DESC)
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE totals (customer_id TEXT PRIMARY KEY, total INTEGER NOT NULL) STRICT, WITHOUT ROWID`)
    const insert = db.prepare('INSERT INTO rows VALUES (?, ?, ?, ?, ?)')
    for (const batch of makeInvoices(shape, 'the SQLite floor')) {
      db.exec('BEGIN')
      for (const invoice of batch)
        insert.run(
          invoice.customer_id,
          invoice.issued_at,
          invoice.id,
          invoice.status,
          serializeSummary(invoice),
        )
      db.exec('COMMIT')
      // Lets a signal through.
      await setImmediate()
    }
    db.exec('INSERT INTO totals SELECT customer_id, count(*) FROM rows GROUP BY customer_id')
    db.close()
  })
}

/** The address of the database that holds the PostgreSQL floor's tables and the peer's. */
export function seedPostgresTables(server: PostgresServer, shape: Shape): Promise<string> {
  return fillDatabase(server, nameTables(shape), async url => {
    const client = new pg.Client(url).on('error', () => {})
    await client.connect()
    try {
      await client.query(`
        CREATE TABLE rows (customer_id text COLLATE "C", issued_at text COLLATE "C", id text COLLATE "C", status text, summary text);
        CREATE TABLE totals (customer_id text COLLATE "C" PRIMARY KEY, total bigint NOT NULL);
        ${createPeerTable}`)
      for (const batch of makeInvoices(shape, 'the PostgreSQL floor and the peer')) {
        const column = (name: keyof Invoice) => batch.map(invoice => invoice[name])
        await client.query(
          'INSERT INTO rows SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])',
          [
            ...(['customer_id', 'issued_at', 'id', 'status'] as const).map(column),
            batch.map(serializeSummary),
          ],
        )
        await client.query(insertPeerRows, [JSON.stringify(batch)])
      }
      process.stderr.write('Putting the floor into order …\n')
      await client.query(`
        CREATE INDEX rows_in_order ON rows (customer_id, issued_at DESC, id DESC);
        CLUSTER rows USING rows_in_order;
        INSERT INTO totals SELECT customer_id, count(*) FROM rows GROUP BY customer_id`)
    } finally {
      await client.end()
    }
  })
}
