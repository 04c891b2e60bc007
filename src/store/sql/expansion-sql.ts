/** SQL of an expanded invoice, which is read as several lines of text. */
import { briefs } from '../../domain/expanded.ts'
import { columnOfExpansion } from '../../domain/expansion.ts'
import type { EngineName } from './filters.ts'

export const lineBreak: Record<EngineName, string> = { sqlite: 'char(10)', postgres: "E'\\n'" }

/** Taxes as `taxesOf` returns them. They are computed from other stored texts, so that only requests for taxes cost more. */
const taxes: Record<EngineName, (row: string) => string> = {
  sqlite: row => `coalesce(
    nullif(CASE WHEN ${row}document ->> 'currency' = ${row}currency THEN ${row}document -> 'taxes' END, 'null'),
    ${row}payment -> 'taxes', 'null')`,
  postgres: row =>
    `coalesce(nullif(CASE WHEN ${row}document::json ->> 'currency' = ${row}currency THEN (${row}document::json -> 'taxes')::text END, 'null'), (${row}payment::json -> 'taxes')::text, 'null')`,
}

/**
 * Lines of an expanded invoice: its summary, then one line for each of `expansions`. `row` is the prefix of each column, such as `i.`, or
 * an empty text. `ifAsked` returns the SQL of the taxes, or of an empty text when the request does not ask for taxes.
 */
export function expandedLines(engine: EngineName, row: string, ifAsked: (taxes: string) => string): string {
  const columns = ['summary', ...briefs.map(name => columnOfExpansion[name])].map(column => row + column)
  return [...columns, ifAsked(taxes[engine](row))].join(` || ${lineBreak[engine]} || `)
}
