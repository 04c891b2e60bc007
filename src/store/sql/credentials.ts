/** Reads and writes tokens and keys, for the commands that create and revoke them. */
import { type KindName, kinds, type Value } from '../contents.ts'
import type { OperatorStore, StoredKey, StoredToken, WriteStore } from '../store.ts'
import { type Db, type Insertion, insertContents } from './db.ts'

interface Stored {
  tokens: StoredToken
  keys: StoredKey
}

export function columnsOf(db: Db, name: KindName): string {
  return kinds[name].columns.map(column => (column === 'customers' ? db.customersAsJson : column)).join(', ')
}

async function read<Table extends keyof Stored>(db: Db, table: Table, rest: string, ...values: Value[]) {
  const sql = `SELECT ${columnsOf(db, table)} FROM fatura.${table} ${rest}`
  const rows = await db.query<{ customers: string | null }>(sql, values)
  return rows.map(row => ({
    ...row,
    customers: row.customers && JSON.parse(row.customers),
  })) as Stored[Table][]
}

async function save<Table extends keyof Stored>(db: Db, table: Table, given: Stored[Table]): Promise<void> {
  const row: Record<string, unknown> = {
    ...given,
    customers: given.customers && JSON.stringify(given.customers),
  }
  const content = kinds[table].columns.map(column => row[column] as Value)
  await insertContents(db, table, [content])
  await saveScope(db, String(content[0]), given.customers)
}

async function revoke<Table extends keyof Stored>(db: Db, table: Table, id: string, at: number) {
  const [idColumn] = kinds[table].columns
  // Citus cannot convert a column to JSON in RETURNING. A second statement reads the row.
  const sql = `UPDATE fatura.${table} SET revoked_at = coalesce(revoked_at, $2) WHERE ${idColumn} = $1`
  await db.query(sql, [id, at])
  const [row] = await read(db, table, `WHERE ${idColumn} = $1`, id)
  return row ?? null
}

export function credentialReads(db: Db): Pick<OperatorStore, 'listTokens' | 'listKeys'> {
  return {
    listTokens: () => read(db, 'tokens', 'ORDER BY created_at DESC, id'),
    listKeys: () => read(db, 'keys', 'ORDER BY created_at DESC, kid'),
  }
}

export function credentialWrites(
  db: Db,
): Pick<WriteStore, 'saveToken' | 'revokeToken' | 'saveKey' | 'revokeKey'> {
  return {
    saveToken: token => save(db, 'tokens', token),
    revokeToken: (id, at) => revoke(db, 'tokens', id, at),
    saveKey: key => save(db, 'keys', key),
    revokeKey: (kid, at) => revoke(db, 'keys', kid, at),
  }
}

const scopeInsertion: Insertion = {
  into: 'fatura.scopes',
  columns: { id: 'text', customer_id: 'text' },
  rest: 'ON CONFLICT DO NOTHING',
}

/** Replaces the list of customers of a token or key. Null means all customers. API requests look up these rows. */
export async function saveScope(db: Db, id: string, customers: readonly string[] | null): Promise<void> {
  await db.query('DELETE FROM fatura.scopes WHERE id = $1', [id])
  const rows = [...new Set(customers)].map(customerId => [id, customerId])
  if (rows.length > 0) await db.insert(scopeInsertion, rows)
}
