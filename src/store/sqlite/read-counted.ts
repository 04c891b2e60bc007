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
  const standing = db.prepare(`
    SELECT version, counted, synced_at FROM freshness LEFT JOIN customers ON customer_id = ?1`)

  function readStanding(customerId: string): Standing {
    return standing.get(customerId) as unknown as Standing
  }

  return {
    readSnapshot(customerId: string): Snapshot {
      const { version, synced_at } = readStanding(customerId)
      return { version: version ?? 0, synced_at }
    },

    /** Null when the customer has no counters in this snapshot. */
    list(query: InvoiceQuery): InvoicePage | null {
      begin.run()
      try {
        const standing = readStanding(query.customer_id)
        return standing.counted === 1 ? pageOf(standing, list(query)) : null
      } finally {
        end.run()
      }
    },

    /** Between two steps its snapshot stays open, so nothing else may use the connection until the end. */
    *search(query: InvoiceQuery): Steps<InvoicePage | null> {
      begin.run()
      try {
        const standing = readStanding(query.customer_id)
        return standing.counted === 1 ? pageOf(standing, yield* search(query)) : null
      } finally {
        end.run()
      }
    },
  }
}

/** Where a customer's records stand; nulls for a customer without any. */
interface Standing {
  version: number | null
  counted: number | null
  synced_at: number | null
}

function pageOf({ version, synced_at }: Standing, { total, page, summaries }: CountedPage): InvoicePage {
  return { total, page, summaries: summaries ?? nothing, version: version ?? 0, synced_at }
}
