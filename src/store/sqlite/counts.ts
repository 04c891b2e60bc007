/** Totals, first pages and counters of the customers that a transaction changed: written before it commits. */
import type { DatabaseSync } from 'node:sqlite'
import {
  Changes,
  changedCounters,
  changeRows,
  countedAbove,
  counterColumns,
  headSize,
  versionAfter,
} from '../read-model/counting.ts'
import type { SharedRows } from '../shared/shared-rows.ts'
import { joinSummaries } from './read-pages.ts'

const currentHead = `
  (SELECT CAST(${joinSummaries} AS BLOB) FROM (
    SELECT summary FROM invoices WHERE customer_id = ?1 ORDER BY issued_at DESC, id DESC LIMIT ${headSize}))`

export function keepCounts(db: DatabaseSync) {
  const readCustomer = db.prepare('SELECT counted, total, version FROM customers WHERE customer_id = ?1')
  const countInvoices = db.prepare('SELECT count(*) AS n FROM invoices WHERE customer_id = ?1')
  const addCounter = db.prepare(`
    INSERT INTO counts (customer_id, month, status, currency, ix, n, high, low)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (customer_id, month, status, currency, ix) DO UPDATE SET
      n = n + excluded.n, high = high + excluded.high, low = low + excluded.low`)
  const deleteEmpty = db.prepare(`
    DELETE FROM counts WHERE customer_id = ?1 AND month = ?2 AND status = ?3 AND currency = ?4 AND ix = ?5 AND n = 0`)
  const deleteCounters = db.prepare('DELETE FROM counts WHERE customer_id = ?1')
  const makeCounters = db.prepare(`
    INSERT INTO counts (customer_id, month, status, currency, ix, n, high, low) SELECT ?1, ${counterColumns('sqlite')}
    FROM invoices INDEXED BY invoices_in_order WHERE customer_id = ?1 GROUP BY 2, 3, 4, 5`)
  const setCounted = db.prepare('UPDATE customers SET counted = ?2 WHERE customer_id = ?1')
  const saveCustomer = db.prepare(`
    INSERT INTO customers (customer_id, version, total, head) VALUES (?1, ?2, ?3, ${currentHead})
    ON CONFLICT (customer_id) DO UPDATE SET version = max(version + 1, excluded.version),
      total = total + excluded.total, head = excluded.head
    RETURNING total, counted`)

  const insertChange = db.prepare(`
    INSERT INTO changes (customer_id, version, previous, invoice_id, kind, at, batch, place)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`)

  /** Saves a customer with so many more invoices; one that is large by now gets counters. */
  function save(customerId: string, added: number, version: number): void {
    const saved = saveCustomer.get(customerId, version, added)
    if (saved?.counted === 1 || Number(saved?.total) <= countedAbove) return
    makeCounters.run(customerId)
    setCounted.run(customerId, 1)
  }

  let changes = new Changes()
  let shared: SharedRows

  function flush(): void {
    const now = Date.now()
    for (const [customerId, change] of changes.customers) {
      for (const counter of changedCounters(change)) {
        addCounter.run(customerId, ...counter)
        const [month, status, currency, ix, n] = counter
        if (n < 0) deleteEmpty.run(customerId, month, status, currency, ix)
      }
      const version = versionAfter(change, now)
      save(customerId, change.added, version)
      const { number, count } = shared.batch
      for (const { previous, invoice_id, kind, place, ...row } of changeRows(
        customerId,
        change,
        version,
        count,
      ))
        insertChange.run(customerId, row.version, previous, invoice_id, kind, now, number, place)
      shared.batch.count += change.kinds.size
    }
    changes = new Changes()
  }

  return {
    begin(rows: SharedRows): void {
      changes = new Changes()
      shared = rows
    },
    /** As `Changes` notes it. The customer's version rises. */
    note(...noted: Parameters<Changes['note']>): void {
      const [key] = noted
      if (changes.isFull()) flush()
      if (!changes.has(key.customer_id)) {
        const customer = readCustomer.get(key.customer_id)
        changes.add(key.customer_id, {
          isCounted: customer?.counted === 1,
          version: Number(customer?.version ?? 0),
        })
      }
      changes.note(...noted)
    },
    flush,
    recount(customerId: string): void {
      deleteCounters.run(customerId)
      setCounted.run(customerId, 0)
      const total = Number(countInvoices.get(customerId)?.n)
      save(customerId, total - Number(readCustomer.get(customerId)?.total ?? 0), Date.now())
    },
  }
}
