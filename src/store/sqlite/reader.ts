import { isForHead } from '../read-model/counting.ts'
import { changeReads } from '../shared/changes.ts'
import {
  type InvoicePage,
  type InvoiceQuery,
  type KeyAccess,
  type ReadStore,
  type StoredInvoice,
  StoreReplaced,
  StoreUnavailable,
  type TokenAccess,
} from '../store.ts'
import { openReadOnly } from './database.ts'
import { attemptRead } from './failures.ts'
import { closeUnlessCurrent, schema } from './migrations.ts'
import { feedStatements } from './read-changes.ts'
import { readPages } from './read-pages.ts'
import { openSearchThreads } from './search-threads.ts'
import { createDb } from './shared-db.ts'

/** A search among more invoices than these takes longer than the way to another thread and back. */
const searchedHereAtMost = 1_000

/** All of it is read from one file: once that is replaced, everything is opened again, or nothing is answered. */
export function openSqliteReader(path: string): ReadStore {
  let opened = openFile(path)

  function current(): ReadStore {
    try {
      opened.look()
    } catch (error) {
      if (!(error instanceof StoreReplaced)) throw error
      const former = opened.store
      opened = openAgain(path)
      former.close().catch(() => {})
    }
    return opened.store
  }

  return {
    listInvoices: async query => current().listInvoices(query),
    readSums: async customerId => current().readSums(customerId),
    readSnapshot: async customerId => current().readSnapshot(customerId),
    readFreshness: async () => current().readFreshness(),
    findInvoice: async (customerId, invoiceId) => current().findInvoice(customerId, invoiceId),
    findToken: async id => current().findToken(id),
    findKey: async kid => current().findKey(kid),
    coversCustomer: async (id, customerId) => current().coversCustomer(id, customerId),
    readChanges: async (customerId, after, limit) => current().readChanges(customerId, after, limit),
    readConnections: () => opened.store.readConnections(),
    readNodes: () => opened.store.readNodes(),
    ping: async () => current().ping(),
    close: () => opened.store.close(),
  }
}

/** It may be complete a moment later. */
function openAgain(path: string): ReturnType<typeof openFile> {
  try {
    return openFile(path)
  } catch (error) {
    throw new StoreUnavailable((error as Error).message, { cause: error })
  }
}

/** `look` throws when the file is not the store any more. */
function openFile(path: string): { store: ReadStore; look(): void } {
  const db = closeUnlessCurrent(openReadOnly(path), path)
  const pages = readPages(db)
  const searches = openSearchThreads(path)
  const firstPage = db.prepare(`
    SELECT total, CAST(head AS TEXT) AS summaries, version, synced_at FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  const invoice = db.prepare(`
    SELECT summary, lines, document, (SELECT synced_at FROM freshness) AS synced_at
    FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = ?1 AND invoice_id = ?2
    WHERE invoices.customer_id = ?1 AND id = ?2`)
  const token = db.prepare(
    'SELECT id, hash, customers IS NULL AS every_customer, expires_at, revoked_at FROM tokens WHERE id = ?1',
  )
  const key = db.prepare(
    'SELECT kid, x, customers IS NULL AS every_customer, revoked_at FROM keys WHERE kid = ?1',
  )
  const scope = db.prepare('SELECT 1 FROM scopes WHERE id = ?1 AND customer_id = ?2')
  const ping = db.prepare(
    'SELECT user_version AS version, (SELECT count(*) FROM streams) FROM pragma_user_version',
  )

  async function listInvoices(query: InvoiceQuery): Promise<InvoicePage> {
    if (isForHead(query))
      return attemptRead(() =>
        firstPageOf(firstPage.get(query.customer_id) as unknown as Partial<InvoicePage>),
      )
    return attemptRead(() => pages.readPage(query, searchedHereAtMost)) ?? searches.search(query)
  }

  const store: ReadStore = {
    listInvoices,
    async readSums(customerId) {
      return attemptRead(() => pages.readSums(customerId))
    },
    async readSnapshot(customerId) {
      return attemptRead(() => pages.readSnapshot(customerId))
    },
    async readFreshness() {
      return attemptRead(() => pages.readSnapshot('')).synced_at
    },
    async findInvoice(customerId, invoiceId) {
      const row = attemptRead(() => invoice.get(customerId, invoiceId))
      return (row as unknown as StoredInvoice | undefined) ?? null
    },
    async findToken(id) {
      return readScoped<TokenAccess>(attemptRead(() => token.get(id)))
    },
    async findKey(kid) {
      return readScoped<KeyAccess>(attemptRead(() => key.get(kid)))
    },
    async coversCustomer(id, customerId) {
      return attemptRead(() => scope.get(id, customerId)) !== undefined
    },
    ...changeReads(feedStatements(createDb(db, path))),
    readConnections: async () => [],
    readNodes: async () => [],
    async ping() {
      const version = attemptRead(() => ping.get())?.version
      const needed = schema.migrations.length
      if (version !== needed)
        throw new StoreUnavailable(
          `The database has schema version ${version}, this process needs ${needed}.`,
        )
    },
    async close() {
      await searches.close()
      db.close()
    },
  }
  return { store, look: () => db.look() }
}

function readScoped<T>(row: Record<string, unknown> | undefined): T | null {
  return row === undefined ? null : ({ ...row, every_customer: row.every_customer === 1 } as T)
}

/** Of a customer without invoices, all but `synced_at` is null. */
function firstPageOf({ total, summaries, version, synced_at = null }: Partial<InvoicePage>): InvoicePage {
  return { total: total ?? 0, page: 1, summaries: summaries ?? '', version: version ?? 0, synced_at }
}
