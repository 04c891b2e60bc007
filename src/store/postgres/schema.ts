import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { PoolClient } from 'pg'
import { checkState, readMigrations, type Schema, type SchemaState } from '../migrations.ts'

const functions = readFileSync(new URL('./functions.sql', import.meta.url), 'utf8')

export const schema: Schema = {
  migrations: readMigrations(new URL('./migrations/', import.meta.url)),
  functions: { sql: functions, sha256: createHash('sha256').update(functions).digest('hex') },
}

/**
 * Number of the advisory lock that a migration holds exclusively and that all writers of rows share. Any number works, but it must never
 * change.
 */
export const migrationLock = 7_261_328_547

/** Runs a statement that reads the schema. It uses functions, because the API's role may not read any table. */
export type AskSchema = <Row extends object>(sql: string) => Promise<Row[]>

export function askOf(client: PoolClient): AskSchema {
  return async <Row extends object>(sql: string) => (await client.query(sql)).rows as Row[]
}

export async function readState(ask: AskSchema): Promise<SchemaState> {
  const [state] = await ask<SchemaRow>('SELECT * FROM fatura.schema_state()').catch((error: Error) => {
    const { code = '' } = (error.cause ?? error) as NodeJS.ErrnoException
    if (/^(3F000|42883)$/.test(code)) return []
    throw error
  })
  if (state === undefined) return { hashes: [], functions: null, isRewriting: false }
  // A schema of an unreleased version has no column `hashes`. It gets `[null]`, which differs from the hashes of every known schema, so it
  // is refused.
  const { hashes = [null], functions = null, is_rewriting = false } = state
  return { hashes: hashes ?? [], functions, isRewriting: is_rewriting ?? false }
}

/** Row with the schema's state. All values are null when the table of migrations is empty. */
type SchemaRow = { hashes?: string[] | null; functions?: string | null; is_rewriting: boolean | null }

export async function checkSchema(ask: AskSchema): Promise<void> {
  checkState('The database', await readState(ask), schema)
}
