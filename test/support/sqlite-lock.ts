import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'

/** Another process's lock on a store, by its address or path, as far as SQLite can tell; gone with the test. */
export function lockSqlite(t: TestContext, store: string): { release(): void } {
  const db = new DatabaseSync(store.replace(/^sqlite:/, ''))
  db.exec('BEGIN IMMEDIATE')
  t.after(() => db.close())
  return { release: () => db.exec('ROLLBACK') }
}
