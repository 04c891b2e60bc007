/** Reads sums and open invoices of a customer. Each answer comes from one snapshot of the connection. */
import type { DatabaseSync } from 'node:sqlite'
import { openInvoicesShown } from '../../domain/balance.ts'
import { type CreditRow, type OpenSumRow, type SumRow, toCredits, toOpenSum, toSum } from '../sql/counters.ts'
import { monthIn } from '../sql/filters.ts'
import type { CustomerSums, OpenInvoices } from '../store.ts'
import type { Snapshots } from './snapshots.ts'

const openInvoices = `invoices INDEXED BY invoices_open WHERE customer_id = ?1 AND status = 'open'`

export function sumReads(db: DatabaseSync, snapshots: Snapshots) {
  const sums = prepareSums(db)
  const findOpen = prepareOpen(db)
  const readOpenSums = (customerId: string) =>
    (sums.open.all(customerId) as unknown as OpenSumRow[]).map(toOpenSum)
  return {
    readSums: (customerId: string): CustomerSums =>
      snapshots.during(() => {
        const { version, counted, synced_at, life } = snapshots.customer(customerId)
        const invoices = counted === 1 ? sums.counters : sums.invoices
        return {
          sums: (invoices.all(customerId) as unknown as SumRow[]).map(toSum),
          credited: toCredits(sums.credits.all(customerId) as unknown as CreditRow[]),
          open: readOpenSums(customerId),
          ...{ version, synced_at, life },
        }
      }),

    readOpen: (customerId: string, day: string): OpenInvoices =>
      snapshots.during(() => {
        const { version, synced_at, life } = snapshots.customer(customerId)
        const invoices = findOpen(customerId, day)
        return { sums: readOpenSums(customerId), invoices, version, synced_at, life }
      }),
  }
}

function prepareSums(db: DatabaseSync) {
  const counters = db.prepare(`
    SELECT month, status, currency, sum(n), sum(total_cents) FROM counters
    WHERE customer_id = ?1 GROUP BY 1, 2, 3`)
  const invoices = db.prepare(`
    SELECT ${monthIn.sqlite('issued_at')}, status, currency, count(*), sum(total_cents)
    FROM invoices INDEXED BY invoices_in_order WHERE customer_id = ?1 GROUP BY 1, 2, 3`)
  const credits = db.prepare(`
    SELECT currency, sum(credited_cents) FROM invoices INDEXED BY invoices_credited
    WHERE customer_id = ?1 AND status = 'open' AND credited_cents <> 0 GROUP BY currency`)
  const open = db.prepare(`
    SELECT currency, due_date, count(*), count(*) FILTER (WHERE to_pay_cents > 0), sum(to_pay_cents),
      count(*) FILTER (WHERE in_favour_cents > 0), sum(in_favour_cents)
    FROM ${openInvoices} GROUP BY due_date, currency`)
  for (const statement of [counters, invoices, credits, open]) {
    statement.setReturnArrays(true)
    statement.setReadBigInts(true)
  }
  return { counters, invoices, credits, open }
}

/** Finds the first open invoices: those overdue on the day, then those without a due day, then the rest. */
function prepareOpen(db: DatabaseSync) {
  const findRowids = ['due_date < ?2', 'due_date IS NULL', 'due_date >= ?2'].map(condition =>
    db.prepare(
      `SELECT rowid AS row FROM ${openInvoices} AND ${condition} ORDER BY due_date, currency, id LIMIT ?3 + 0`,
    ),
  )
  const readRows = db.prepare(
    `SELECT summary, payment, document FROM json_each(?1) CROSS JOIN invoices ON invoices.rowid = value`,
  )
  return (customerId: string, day: string) => {
    const rowids: number[] = []
    for (const statement of findRowids)
      for (const { row } of statement.all(customerId, day, openInvoicesShown - rowids.length))
        rowids.push(Number(row))
    return readRows.all(JSON.stringify(rowids)) as unknown as OpenInvoices['invoices']
  }
}
