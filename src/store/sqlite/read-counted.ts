/** Pages of a customer with counters: several statements, all from one snapshot of the connection. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { InvoicePage, InvoiceQuery, Snapshot } from '../store.ts'
import { type CountedPage, listCounted } from './list-counted.ts'
import type { Steps } from './search-counted.ts'

/** Filters come in a few dozen combinations; only a search of many words makes more. */
const maxPrepared = 256

export function prepareOnce(db: DatabaseSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>()
  return sql => {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      if (prepared.size >= maxPrepared) prepared.clear()
      statement = db.prepare(sql)
      prepared.set(sql, statement)
    }
    return statement
  }
}

const nothing = new Uint8Array()

export function readCounted(db: DatabaseSync, prepare: (sql: string) => StatementSync) {
  const { list, search } = listCounted(db, prepare)
  const begin = db.prepare('BEGIN')
  const end = db.prepare('ROLLBACK')
  const snapshot = db.prepare(`
    SELECT (SELECT version FROM customers WHERE customer_id = ?1) AS version,
           (SELECT synced_at FROM freshness) AS synced_at`)

  function readSnapshot(customerId: string): Snapshot {
    const { version, synced_at } = snapshot.get(customerId) as unknown as Snapshot
    return { version: version ?? 0, synced_at }
  }

  return {
    readSnapshot,

    list(query: InvoiceQuery): InvoicePage {
      begin.run()
      try {
        return pageOf(readSnapshot(query.customer_id), list(query))
      } finally {
        end.run()
      }
    },

    /** Between two steps its snapshot stays open, so nothing else may use the connection until the end. */
    *search(query: InvoiceQuery): Steps<InvoicePage> {
      begin.run()
      try {
        return pageOf(readSnapshot(query.customer_id), yield* search(query))
      } finally {
        end.run()
      }
    },
  }
}

function pageOf(snapshot: Snapshot, { total, page, summaries }: CountedPage): InvoicePage {
  return { total, page, summaries: summaries ?? nothing, ...snapshot }
}
