/** What `expand` adds to a summary, as SQL for the text of a row. */
import type { Expansion } from '../../domain/expanded.ts'
import { columnOfExpansion } from '../../domain/expansion.ts'
import type { EngineName } from './filters.ts'

/** The taxes as `taxesOf` finds them. They stand in texts that the row has anyway: only who asks for them pays. */
const taxes: Record<EngineName, (row: string) => string> = {
  sqlite: row => `coalesce(
    nullif(CASE WHEN ${row}document ->> 'currency' = ${row}currency THEN ${row}document -> 'taxes' END, 'null'),
    ${row}payment -> 'taxes', 'null')`,
  postgres: row =>
    `coalesce(nullif(CASE WHEN ${row}document::json ->> 'currency' = ${row}currency THEN (${row}document::json -> 'taxes')::text END, 'null'), (${row}payment::json -> 'taxes')::text, 'null')`,
}

/** `row` stands before each column: `i.`, or nothing. */
export function expansionSql(name: Expansion, engine: EngineName, row: string): string {
  return name === 'taxes' ? taxes[engine](row) : row + columnOfExpansion[name]
}
