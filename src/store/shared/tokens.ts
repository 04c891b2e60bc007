/** Tokens, as the commands that make and revoke them see them. */
import { kinds } from '../contents.ts'
import type { OperatorStore, StoredToken, WriteStore } from '../store.ts'
import type { Db } from './db.ts'
import { saveScope } from './scopes.ts'

/** How a token is read: its customers as JSON text. */
type TokenRow = Omit<StoredToken, 'customers'> & { customers: string | null }

const { columns } = kinds.tokens

function tokenColumns({ customersAsJson }: Pick<Db, 'customersAsJson'>): string {
  return columns.map(column => (column === 'customers' ? customersAsJson : column)).join(', ')
}

function readToken(row: TokenRow): StoredToken {
  return { ...row, customers: row.customers === null ? null : JSON.parse(row.customers) }
}

export function tokenReads(db: Db): Pick<OperatorStore, 'listTokens'> {
  return {
    async listTokens() {
      const sql = `SELECT ${tokenColumns(db)} FROM fatura.tokens ORDER BY created_at DESC, id`
      return (await db.query<TokenRow>(sql)).map(readToken)
    },
  }
}

export function tokenWrites(db: Db): Pick<WriteStore, 'saveToken' | 'revokeToken'> {
  return {
    async saveToken({ id, name, hash, customers, created_at, expires_at, revoked_at }) {
      const given = db.customersFromJson(customers && JSON.stringify(customers))
      await db.query(
        `INSERT INTO fatura.tokens (${columns.join(', ')}) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
        ...[id, name, hash, given, created_at, expires_at, revoked_at],
      )
      await saveScope(db, id, customers)
    },
    async revokeToken(id, at) {
      // Citus makes no JSON of what a write returns.
      await db.query('UPDATE fatura.tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1', id, at)
      const [row] = await db.query<TokenRow>(
        `SELECT ${tokenColumns(db)} FROM fatura.tokens WHERE id = $1`,
        id,
      )
      return row === undefined ? null : readToken(row)
    },
  }
}
