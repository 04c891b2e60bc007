/** How a token lies in its table. */
import type { StoredToken } from '../store.ts'

export const tokenColumns = 'id, name, hash, customers, created_at, expires_at, revoked_at'

export type TokenRow = Omit<StoredToken, 'customers'> & { customers: string | null }

export function readToken(row: TokenRow): StoredToken {
  return { ...row, customers: row.customers === null ? null : JSON.parse(row.customers) }
}
