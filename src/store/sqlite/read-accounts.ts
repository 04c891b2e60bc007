/** Reads the entries of customers' accounts. All statements of an answer read from one snapshot of the connection. */
import type { DatabaseSync } from 'node:sqlite'
import type { AccountQuery, StoredEntry } from '../../domain/account.ts'
import { type CreditRow, firstDay, lastDay, type PeriodRow, toPeriod, toSums } from '../sql/counters.ts'
import type { AccountPage } from '../store.ts'
import { clampPage } from './read-pages.ts'
import { openSnapshots } from './snapshots.ts'

const inOrder = 'account_entries INDEXED BY account_entries_in_order'
const ofPeriod = 'customer_id = ?1 AND day >= ?2 AND day <= ?3'
const page = (skip: string, limit: string) =>
  `ORDER BY day, invoice_id, place LIMIT ${limit} + 0 OFFSET ${skip} + 0`

export function readAccounts(db: DatabaseSync): (query: AccountQuery) => AccountPage {
  const snapshots = openSnapshots(db)
  const opening = db.prepare(
    `SELECT currency, sum(cents) FROM ${inOrder} WHERE customer_id = ?1 AND day < ?2 GROUP BY currency`,
  )
  const period = db.prepare(`
    SELECT currency, count(*), sum(max(cents, 0)), sum(max(-cents, 0))
    FROM ${inOrder} WHERE ${ofPeriod} GROUP BY currency`)
  const earlier = db.prepare(`
    SELECT currency, sum(cents)
    FROM (SELECT currency, cents FROM ${inOrder} WHERE ${ofPeriod} ${page('0', '?4')}) GROUP BY currency`)
  const entries = db.prepare(
    `SELECT day, currency, cents, entry FROM ${inOrder} WHERE ${ofPeriod} ${page('?4', '?5')}`,
  )
  for (const statement of [opening, period, earlier]) {
    statement.setReturnArrays(true)
    statement.setReadBigInts(true)
  }
  entries.setReturnArrays(true)

  return query =>
    snapshots.during(() => {
      const { customer_id, from = firstDay, to = lastDay, page_size } = query
      const { version, synced_at, life } = snapshots.customer(customer_id)
      const periods = (period.all(customer_id, from, to) as unknown as PeriodRow[]).map(toPeriod)
      const total = periods.reduce((sum, { count }) => sum + count, 0)
      const { page, skip } = clampPage(query, total)
      return {
        opening: toSums(opening.all(customer_id, from) as unknown as CreditRow[]),
        period: periods,
        earlier: toSums(earlier.all(customer_id, from, to, skip) as unknown as CreditRow[]),
        entries: entries.all(customer_id, from, to, skip, page_size) as unknown as StoredEntry[],
        ...{ page, version, synced_at, life },
      }
    })
}
