import type { ChildProcess } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'

/** Another process's lock on a store, by its address or path, as far as SQLite can tell; gone with the test. */
export function lockSqlite(t: TestContext, store: string): { release(): void } {
  const db = new DatabaseSync(store.replace(/^sqlite:/, ''))
  db.exec('BEGIN IMMEDIATE')
  t.after(() => db.close())
  return { release: () => db.exec('ROLLBACK') }
}

/** Stops a writer of a store between two writes: within one, it would keep a SQLite file locked for all. */
export function freezeBetweenWrites(writer: ChildProcess, store: string): void {
  const db = store.startsWith('sqlite:') ? new DatabaseSync(store.replace(/^sqlite:/, '')) : null
  db?.exec('PRAGMA busy_timeout = 20000; BEGIN IMMEDIATE')
  writer.kill('SIGSTOP')
  db?.close()
}
