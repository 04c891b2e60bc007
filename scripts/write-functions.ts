/** Writes PostgreSQL's functions into its newest migration, which must not be released yet. */
import { readFileSync, writeFileSync } from 'node:fs'
import { functions, functionsMark } from '../src/store/postgres/functions.ts'
import { migrations } from '../src/store/postgres/schema-version.ts'

const name = `${String(migrations.length).padStart(4, '0')}.sql`
const file = new URL(`../src/store/postgres/migrations/${name}`, import.meta.url)
const [tables = ''] = readFileSync(file, 'utf8').split(functionsMark)
writeFileSync(file, `${tables.trimEnd()}\n\n${functionsMark}${functions}\n`)
process.stdout.write(`Wrote the functions into ${name}.\n`)
