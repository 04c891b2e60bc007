/** The list's one statement: total, clamped page, rows, version and freshness, all from one snapshot. */
import type { InvoiceQuery } from '../store.ts'

export type Value = string | number

export interface ListStatement {
  sql: string
  values: Value[]
}

/** The SQL depends only on which filters are given, never on their values: it is worth preparing once. */
export function listStatement(query: InvoiceQuery): ListStatement {
  const values: Value[] = [query.customer_id, query.page, query.page_size]
  const bind = (value: Value): string => `?${values.push(value)}`

  const conditions = ['customer_id = ?1']
  if (query.status !== undefined) conditions.push(`status = ${bind(query.status)}`)
  if (query.ix_status !== undefined) conditions.push(`ix_status = ${bind(query.ix_status)}`)
  if (query.issued_from !== undefined) conditions.push(`issued_at >= ${bind(query.issued_from)}`)
  if (query.issued_before !== undefined) conditions.push(`issued_at < ${bind(query.issued_before)}`)
  for (const word of query.words ?? []) {
    const alternatives = word.map(text => `instr(search, ${bind(text)}) > 0`)
    conditions.push(`(${alternatives.join(' OR ')})`)
  }
  const matching = conditions.join(' AND ')

  const sql = `
    WITH
      matched AS MATERIALIZED (SELECT count(*) AS total FROM invoices WHERE ${matching}),
      -- node:sqlite binds every number as a REAL, so the division has to be cut to a whole page.
      place AS MATERIALIZED (
        SELECT total, max(1, min(?2, CAST((total + ?3 - 1) / ?3 AS INTEGER))) AS page FROM matched
      )
    SELECT total, page,
      (SELECT group_concat(summary, ',' ORDER BY issued_at DESC, id DESC) FROM (
        SELECT summary, issued_at, id FROM invoices WHERE ${matching}
        ORDER BY issued_at DESC, id DESC LIMIT ?3 OFFSET (SELECT (page - 1) * ?3 FROM place)
      )) AS summaries,
      (SELECT version FROM customers WHERE customer_id = ?1) AS version,
      (SELECT synced_at FROM freshness) AS synced_at
    FROM place`
  return { sql, values }
}
