import type { Value } from '../contents.ts'
import { customersInOrder, type WalkDialect, walkStatement } from '../shared/walk-statement.ts'
import { batchSizeOf, type InvoiceWalk, type WalkedInvoice } from '../store.ts'
import { openReadOnly } from './database.ts'
import { translate } from './failures.ts'
import { writeForSqlite } from './shared-db.ts'

const dialect: WalkDialect = {
  engine: 'sqlite',
  inOrder: 'INDEXED BY invoices_in_order',
  ownTextHolds: place => `instr(i.own_text, ${place}) > 0`,
  partyTextHolds: place => `instr(y.text, ${place}) > 0`,
}

/** On a connection of its own: its transaction is one snapshot from the first row to the last, and nobody waits for it. */
export async function* walkSqlite(path: string, walk: InvoiceWalk): AsyncGenerator<WalkedInvoice[]> {
  const size = batchSizeOf(walk)
  const db = openReadOnly(path)
  try {
    // Each page is read once: to keep many would only take memory.
    translate(path, () => db.exec('PRAGMA cache_size = -4096; BEGIN'))
    for (const customerId of walk.customers === null ? [null] : customersInOrder(walk.customers)) {
      const { sql, values } = walkStatement(walk, customerId, dialect)
      const rows = translate(path, () => db.prepare(writeForSqlite(sql)).iterate(...values))
      for (;;) {
        const batch = translate(path, () => takeSome(rows as IterableIterator<Record<string, Value>>, size))
        if (batch.length > 0) yield batch
        if (batch.length < size) break
      }
    }
  } finally {
    db.close()
  }
}

function takeSome(rows: IterableIterator<Record<string, Value>>, size: number): WalkedInvoice[] {
  const batch: WalkedInvoice[] = []
  while (batch.length < size) {
    const { value, done } = rows.next()
    if (done === true) break
    batch.push(value as unknown as WalkedInvoice)
  }
  return batch
}
