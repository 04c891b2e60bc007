import { StoreError, schemaMismatch } from '../store.ts'
import { migrations } from './schema.ts'

export const schemaVersion = migrations.length

/** Throws unless the schema is exactly the one this version of Fatura knows. */
export async function checkSchema(ask: () => Promise<{ version: number }[]>): Promise<void> {
  const version = await ask().then(
    ([row]) => row?.version ?? 0,
    error => {
      // No such schema, or no such function in it.
      if (error.code === '3F000' || error.code === '42883') return 0
      throw error
    },
  )
  if (version !== schemaVersion) throw new StoreError(schemaMismatch('The database', version, schemaVersion))
}
