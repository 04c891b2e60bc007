/**
 * The list's one statement: total, clamped page, rows, version and freshness, all from one snapshot. It counts rows, so
 * it answers only for a customer without counters; and for the first page of a whole list, whose total is known.
 */
import { isCountable } from '../read-model/counting.ts'
import { conditionsOf } from '../read-model/filters.ts'
import { formsOf, type SearchWord } from '../read-model/search.ts'
import type { InvoiceQuery } from '../store.ts'

export type Value = string | number

/** As bytes, which go to the socket as they are: decoding and encoding them would take longer than reading them. */
export const joinSummaries = "CAST(group_concat(summary, ',') AS BLOB)"

export interface ListStatement {
  sql: string
  values: Value[]
}

function holdsWord(word: SearchWord, bind: (value: Value) => string): string {
  const [own = '', ...others] = formsOf(word).map(bind)
  const inParty = [own, ...others].map(text => `instr(text, ${text}) > 0`).join(' OR ')
  return `(instr(own_text, ${own}) > 0 OR party_id IN (SELECT party_id FROM parties WHERE customer_id = ?1 AND (${inParty})))`
}

/** The SQL depends only on which filters are given, never on their values: it is worth preparing once. */
export function listStatement(query: InvoiceQuery): ListStatement {
  const values: Value[] = [query.customer_id, query.page_size]
  const bind = (value: Value): string => `?${values.push(value)}`

  const holds = (word: SearchWord) => holdsWord(word, bind)
  const found = conditionsOf(query, { engine: 'sqlite', row: '', bind, holdsWord: holds })
  const conditions = ['customer_id = ?1', ...found]
  const matching = conditions.join(' AND ')
  const isWhole = conditions.length === 1
  /** Nothing is read of a customer with counters, unless no counter knows the filters. */
  const unlessCounted = (sql: string) =>
    isCountable(query) ? `CASE WHEN counted = 1 THEN NULL ELSE ${sql} END` : sql

  const total = isWhole ? 'total' : `(SELECT count(*) FROM invoices WHERE ${matching})`
  const rows = (offset: string) => `
    (SELECT ${joinSummaries} FROM (
      SELECT summary FROM invoices WHERE ${matching} ORDER BY issued_at DESC, id DESC LIMIT ?2${offset}))`

  // Most ask for the first page: nothing has to be known before its rows are read.
  if (query.page === 1) {
    const part = (sql: string) => (isWhole ? sql : unlessCounted(sql))
    const sql = `
      SELECT ${part(total)} AS total, ${part(rows(''))} AS summaries, version, counted, synced_at
      FROM freshness LEFT JOIN customers ON customer_id = ?1`
    return { sql, values }
  }

  // node:sqlite binds every number as a REAL, so the division has to be cut to a whole page.
  const page = bind(query.page)
  const offset = `max(0, min(${page}, CAST((total + ?2 - 1) / ?2 AS INTEGER)) - 1) * ?2`
  const sql = `
    WITH found AS MATERIALIZED (
      SELECT ${unlessCounted(total)} AS total, version, counted, synced_at
      FROM freshness LEFT JOIN customers ON customer_id = ?1
    )
    SELECT total, version, counted, synced_at,
      ${unlessCounted(rows(` OFFSET (SELECT coalesce(${offset}, 0) FROM found)`))} AS summaries
    FROM found`
  return { sql, values }
}
