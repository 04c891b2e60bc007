/** Keys that sign customer links, as the commands that make and revoke them see them. */
import { kinds } from '../contents.ts'
import type { OperatorStore, StoredKey, WriteStore } from '../store.ts'
import type { Db } from './db.ts'
import { saveScope } from './scopes.ts'

/** How a key is read: its customers as JSON text. */
type KeyRow = Omit<StoredKey, 'customers'> & { customers: string | null }

const { columns } = kinds.keys

function keyColumns({ customersAsJson }: Pick<Db, 'customersAsJson'>): string {
  return columns.map(column => (column === 'customers' ? customersAsJson : column)).join(', ')
}

function readKey(row: KeyRow): StoredKey {
  return { ...row, customers: row.customers === null ? null : JSON.parse(row.customers) }
}

export function keyReads(db: Db): Pick<OperatorStore, 'listKeys'> {
  return {
    async listKeys() {
      const sql = `SELECT ${keyColumns(db)} FROM fatura.keys ORDER BY created_at DESC, kid`
      return (await db.query<KeyRow>(sql)).map(readKey)
    },
  }
}

export function keyWrites(db: Db): Pick<WriteStore, 'saveKey' | 'revokeKey'> {
  return {
    async saveKey({ kid, name, x, customers, created_at, revoked_at }) {
      const given = db.customersFromJson(customers && JSON.stringify(customers))
      await db.query(
        `INSERT INTO fatura.keys (${columns.join(', ')}) VALUES ($1, $2, $3, $4, $5, $6)`,
        ...[kid, name, x, given, created_at, revoked_at],
      )
      await saveScope(db, kid, customers)
    },
    async revokeKey(kid, at) {
      // Citus makes no JSON of what a write returns.
      await db.query('UPDATE fatura.keys SET revoked_at = coalesce(revoked_at, $2) WHERE kid = $1', kid, at)
      const [row] = await db.query<KeyRow>(`SELECT ${keyColumns(db)} FROM fatura.keys WHERE kid = $1`, kid)
      return row === undefined ? null : readKey(row)
    },
  }
}
