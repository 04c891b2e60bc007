import type { Db, Insertion } from './db.ts'

const insertion: Insertion = {
  into: 'fatura.scopes',
  columns: { id: 'text', customer_id: 'text' },
  onConflict: 'DO NOTHING',
}

/** The customers that a token or a key is for, in place of those that were there; null means all. Requests look them up. */
export async function saveScope(db: Db, id: string, customers: readonly string[] | null): Promise<void> {
  await db.query('DELETE FROM fatura.scopes WHERE id = $1', id)
  const rows = [...new Set(customers)].map(customerId => [id, customerId])
  if (rows.length > 0) await db.insert(insertion, rows)
}
