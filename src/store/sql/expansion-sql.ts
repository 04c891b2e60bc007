/** SQL expressions for the fields that `expand` adds to a summary. */
import type { Expansion } from '../../domain/expanded.ts'
import { columnOfExpansion } from '../../domain/expansion.ts'
import type { EngineName } from './filters.ts'

/** Taxes as `taxesOf` returns them. They are computed from other stored texts, so that only requests for taxes cost more. */
const taxes: Record<EngineName, (row: string) => string> = {
  sqlite: row => `coalesce(
    nullif(CASE WHEN ${row}document ->> 'currency' = ${row}currency THEN ${row}document -> 'taxes' END, 'null'),
    ${row}payment -> 'taxes', 'null')`,
  postgres: row =>
    `coalesce(nullif(CASE WHEN ${row}document::json ->> 'currency' = ${row}currency THEN (${row}document::json -> 'taxes')::text END, 'null'), (${row}payment::json -> 'taxes')::text, 'null')`,
}

/** `row` is the prefix of each column, such as `i.`, or an empty text. */
export function expansionSql(name: Expansion, engine: EngineName, row: string): string {
  return name === 'taxes' ? taxes[engine](row) : row + columnOfExpansion[name]
}
