/** Writes the tables that follow from the code into the pages of the docs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { pagesWithTables, withTables } from './docs-tables.ts'

for (const page of pagesWithTables) {
  const file = new URL(`../${page}`, import.meta.url)
  writeFileSync(file, await withTables(readFileSync(file, 'utf8')))
}
process.stdout.write(`Wrote the tables of ${pagesWithTables.join(', ')}.\n`)
