/** A handle for commands that only look: it cannot write. And the check of the counters, which the writer runs too. */
import type { DatabaseSync } from 'node:sqlite'
import { changeReads } from '../shared/changes.ts'
import { operatorReads } from '../shared/operator-reads.ts'
import type { OnRecounted, OperatorStore } from '../store.ts'
import { openReadOnly } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { feedStatements } from './read-changes.ts'
import { createDb } from './shared-db.ts'
import { walkSqlite } from './walk-invoices.ts'

/** A connection has one transaction at a time: the next one waits for the last. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

export async function openSqliteOperator(path: string): Promise<OperatorStore> {
  const db = openReadOnly(path)
  try {
    checkSchema(db, path)
    const checkEach = eachCustomer(db, path, createTurns())
    const shared = createDb(db, path)
    return {
      ...operatorReads(shared),
      ...changeReads(feedStatements(shared)),
      walkInvoices: walk => walkSqlite(path, walk),
      checkCounts: onProgress => checkEach(null, onProgress),
      async close() {
        db.close()
      },
    }
  } catch (error) {
    db.close()
    throw error
  }
}

/** `repair` is called for a customer of whom something is wrong, and returns how much it found then. */
export type CheckEach = (
  repair: ((customerId: string) => Promise<number>) | null,
  onProgress?: OnRecounted,
) => Promise<number>

/** Checks the counters customer by customer, each at one moment. Nobody waits for it. */
export function eachCustomer(db: DatabaseSync, path: string, inTurn: InTurn): CheckEach {
  return async (repair, onProgress) => {
    // Loaded and prepared when it is asked for: most who open a store never do.
    const recounting = (await import('./recount.ts')).recounts(db)
    const all = onProgress === undefined ? null : recounting.estimate()
    let [wrong, invoices] = [0, 0]
    for (const customerId of recounting.customers()) {
      const found = await inTurn(async () => readOnce(() => recounting.check(customerId)))
      wrong += repair !== null && found.wrong > 0 ? await repair(customerId) : found.wrong
      invoices += found.invoices
      onProgress?.(invoices, all)
    }
    return wrong
  }

  /** Several statements, all from one snapshot; no other writer waits for it. */
  function readOnce<T>(read: () => T): T {
    translate(path, () => db.exec('BEGIN'))
    try {
      return translate(path, read)
    } finally {
      db.exec('ROLLBACK')
    }
  }
}
