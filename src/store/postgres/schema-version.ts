import { checkState, readMigrations, type SchemaState } from '../migrations.ts'

export const migrations = readMigrations(new URL('./migrations/', import.meta.url))

/**
 * Held by a migration while it changes the schema, and shared by all that write rows: neither begins before the other has
 * ended. Any number, as long as it is always this one.
 */
export const migrationLock = 7_261_328_547

/** What a database says of its schema, through functions: the API's role may read no table. */
export type AskSchema = <Row extends object>(sql: string) => Promise<Row[]>

export async function readState(ask: AskSchema): Promise<SchemaState> {
  const [state] = await unlessAbsent(() => ask<SchemaRow>('SELECT * FROM fatura.schema_state()'))
  if (state !== undefined)
    return { version: state.version ?? 0, sha256: state.sha256, isRewriting: state.is_rewriting ?? false }
  // Version 1 has no such function.
  const [old] = await unlessAbsent(() =>
    ask<{ version: number }>('SELECT fatura.schema_version() AS version'),
  )
  return { version: old?.version ?? 0, sha256: null, isRewriting: false }
}

/** All null when the table of migrations is empty. */
type SchemaRow = { version: number | null; sha256: string | null; is_rewriting: boolean | null }

/** Nothing where there is no such schema, or no such function in it. */
async function unlessAbsent<Row>(ask: () => Promise<Row[]>): Promise<Row[]> {
  try {
    return await ask()
  } catch (error) {
    const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
    if (code === '3F000' || code === '42883') return []
    throw error
  }
}

/** Throws unless the schema is exactly the one this version of Fatura knows. */
export async function checkSchema(ask: AskSchema): Promise<void> {
  checkState('The database', await readState(ask), migrations)
}
