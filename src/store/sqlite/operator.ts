/** What commands read that only look, over a handle that cannot write; and what the writer reads over its own. */
import type { DatabaseSync } from 'node:sqlite'
import type { InvoiceKey } from '../../invoice.ts'
import { connectorReads } from '../shared/connector-state.ts'
import { contentsReads } from '../shared/contents.ts'
import type { OnRecounted, OperatorStore, StoredRecord, Stream } from '../store.ts'
import { openReadOnly } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { documentReads } from './read-documents.ts'
import { recounts } from './recount.ts'
import { createDb } from './shared-db.ts'
import { readToken, type TokenRow, tokenColumns } from './tokens.ts'

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
    return operatorReads(db, path, createTurns())
  } catch (error) {
    db.close()
    throw error
  }
}

/** `repair` is called for a customer of whom something is wrong, and says how much it found then. */
export type CheckEach = (
  repair: ((customerId: string) => Promise<number>) | null,
  onProgress?: OnRecounted,
) => Promise<number>

export function operatorReads(db: DatabaseSync, path: string, inTurn: InTurn): OperatorStore {
  const readInvoices = db.prepare(`
    SELECT invoices.customer_id, id, summary, lines FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = invoices.customer_id AND invoice_id = id
    WHERE (invoices.customer_id, id) > (?1, ?2) ORDER BY invoices.customer_id, id LIMIT ?3`)
  const readUnsettled = db.prepare(`
    SELECT customer_id, id FROM invoices INDEXED BY invoices_unsettled
    WHERE status IN ('draft', 'open', 'uncollectible') AND (customer_id, id) > (?1, ?2) AND observed_at < ?4
    ORDER BY customer_id, id LIMIT ?3`)
  const readLastObserved = db.prepare('SELECT last_at FROM observation')
  const listStreams = db.prepare(
    'SELECT name, cursor, succeeded_at, failed_at, error FROM streams ORDER BY name',
  )
  const listTokens = db.prepare(`SELECT ${tokenColumns} FROM tokens ORDER BY created_at DESC, id`)
  const shared = createDb(db, path)
  const checkEach = eachCustomer(db, path, inTurn)

  return {
    checkCounts: onProgress => checkEach(null, onProgress),
    ...documentReads(db, work => translate(path, work)),
    ...connectorReads(shared),
    ...contentsReads(shared),
    async readUnsettled(after, limit, observedBefore) {
      const { customer_id, id } = after ?? { customer_id: '', id: '' }
      const rows = translate(path, () => readUnsettled.all(customer_id, id, limit, observedBefore))
      return rows as unknown as InvoiceKey[]
    },
    async readLastObserved() {
      return Number(translate(path, () => readLastObserved.get())?.last_at)
    },
    async readInvoices(after, limit) {
      const { customer_id, id } = after ?? { customer_id: '', id: '' }
      return translate(path, () => readInvoices.all(customer_id, id, limit)) as unknown as StoredRecord[]
    },
    async listStreams() {
      return translate(path, () => listStreams.all()) as unknown as Stream[]
    },
    async listTokens() {
      return (translate(path, () => listTokens.all()) as unknown as TokenRow[]).map(readToken)
    },
    async close() {
      db.close()
    },
  }
}

/** Checks the counters customer by customer, each at one moment. Nobody waits for it. */
export function eachCustomer(db: DatabaseSync, path: string, inTurn: InTurn): CheckEach {
  const recounting = recounts(db)
  return async (repair, onProgress) => {
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
