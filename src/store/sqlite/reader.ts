import { checkVersion } from '../migrations.ts'
import { changeReadsOf } from '../sql/changes.ts'
import { searchedAtOnce } from '../sql/search.ts'
import {
  type KeyAccess,
  type ReadStore,
  type StoredInvoice,
  StoreReplaced,
  StoreUnavailable,
  type TokenAccess,
} from '../store.ts'
import { closeUnless, openReadOnly } from './database.ts'
import { attemptRead } from './failures.ts'
import { checkSchema, schema } from './migrations.ts'
import { readAccounts } from './read-accounts.ts'
import { readPages } from './read-pages.ts'
import { openSearchThreads } from './search-threads.ts'
import { createDb } from './shared-db.ts'

/**
 * Opens the store for reading. All answers come from the same file. After it was replaced, everything is opened again before the next
 * answer.
 */
export function openSqliteReader(path: string): ReadStore {
  let opened = openFile(path)

  function current(): OpenFile {
    try {
      opened.db.checkNowAndThen()
    } catch (error) {
      if (!(error instanceof StoreReplaced)) throw error
      const former = opened
      opened = openAgain(path)
      close(former).catch(() => {})
    }
    return opened
  }

  function read<T>(work: (file: OpenFile) => T): T {
    const file = current()
    return attemptRead(() => work(file))
  }

  return {
    async listInvoices(query, inTurn = search => search()) {
      const page = read(({ pages }) => pages.readPage(query, searchedAtOnce))
      return page ?? inTurn(() => opened.searches.search(query))
    },
    readSums: async customerId => read(({ pages }) => pages.readSums(customerId)),
    readOpen: async (customerId, day) => read(({ pages }) => pages.readOpen(customerId, day)),
    readAccount: async query => read(({ account }) => account(query)),
    readSnapshot: async customerId => read(({ pages }) => pages.readSnapshot(customerId)),
    readFreshness: async () => read(({ pages }) => pages.readSnapshot('')),
    async findInvoice(customerId, invoiceId) {
      const row = read(({ invoice }) => invoice.get(customerId, invoiceId))
      return (row as unknown as StoredInvoice | undefined) ?? null
    },
    findToken: async id => read(({ token }) => readScoped<TokenAccess>(token.get(id))),
    findKey: async kid => read(({ key }) => readScoped<KeyAccess>(key.get(kid))),
    coversCustomer: async (id, customerId) => read(({ scope }) => scope.get(id, customerId)) !== undefined,
    readChanges: async (...place) => current().readChanges(...place),
    readConnections: async () => [],
    ping: async () => checkVersion(read(({ ping }) => ping.get())?.version, schema),
    close: () => close(opened),
  }
}

/** Opens the file that replaced the store. It may be incomplete for a moment, so any failure counts as temporary. */
function openAgain(path: string): OpenFile {
  try {
    return openFile(path)
  } catch (error) {
    throw new StoreUnavailable((error as Error).message, { cause: error })
  }
}

type OpenFile = ReturnType<typeof openFile>

function openFile(path: string) {
  const db = closeUnless(openReadOnly(path), checkSchema)
  return {
    db,
    pages: readPages(db),
    account: readAccounts(db),
    searches: openSearchThreads(path),
    ...changeReadsOf(createDb(db)),
    invoice: db.prepare(`
      SELECT summary, lines, document, payment, (SELECT synced_at FROM freshness) AS synced_at
      FROM invoices
      LEFT JOIN invoice_lines ON invoice_lines.customer_id = ?1 AND invoice_id = ?2
      WHERE invoices.customer_id = ?1 AND id = ?2`),
    token: db.prepare(
      'SELECT id, hash, customers IS NULL AS every_customer, expires_at, revoked_at FROM tokens WHERE id = ?1',
    ),
    key: db.prepare(
      'SELECT kid, x, customers IS NULL AS every_customer, revoked_at FROM keys WHERE kid = ?1',
    ),
    scope: db.prepare('SELECT 1 FROM scopes WHERE id = ?1 AND customer_id = ?2'),
    ping: db.prepare(
      'SELECT user_version AS version, (SELECT count(*) FROM streams) FROM pragma_user_version',
    ),
  }
}

async function close({ db, searches }: OpenFile): Promise<void> {
  await searches.close()
  db.close()
}

type Row = Record<string, unknown> | undefined

function readScoped<T>(row: Row): T | null {
  return row === undefined ? null : ({ ...row, every_customer: row.every_customer === 1 } as T)
}
