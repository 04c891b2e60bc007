import { StoreError, schemaMismatch } from '../store.ts'
import { migrations } from './schema.ts'

export const schemaVersion = migrations.length

type Ask = () => Promise<{ version: number }[]>

/** 0 where there is no schema yet. */
export function readVersion(ask: Ask): Promise<number> {
  return ask().then(
    ([row]) => row?.version ?? 0,
    error => {
      // No such schema, or no such function in it.
      if (error.code === '3F000' || error.code === '42883') return 0
      throw error
    },
  )
}

/** Throws unless the schema is exactly the one this version of Fatura knows. */
export async function checkSchema(ask: Ask): Promise<void> {
  const version = await readVersion(ask)
  if (version !== schemaVersion) throw new StoreError(schemaMismatch('The database', version, schemaVersion))
}
