import { kinds } from '../contents.ts'
import type { EndpointCommands, StoredEndpoint } from '../endpoint-store.ts'
import type { OperatorStore, WriteTransaction } from '../store.ts'
import { type Db, insertContents, returnsAny } from './db.ts'

type EndpointRow = Omit<StoredEndpoint, 'customers'> & { customer_ids: string | null }

export function endpointReads(db: Db): Pick<OperatorStore, 'listEndpoints'> {
  return {
    async listEndpoints() {
      const sql = `SELECT ${kinds.endpoints.columns.join(', ')} FROM fatura.endpoints ORDER BY created_at, id`
      const rows = await db.query<EndpointRow>(sql)
      return rows.map(({ customer_ids, ...row }) => ({
        ...row,
        customers: customer_ids === null ? null : JSON.parse(customer_ids),
      }))
    },
  }
}

export function endpointWrites(db: Db): Pick<WriteTransaction, 'saveDelivery'> {
  return {
    saveDelivery: (id, since, { cursor, state, attempts, next_at, error }) =>
      returnsAny(
        db,
        `UPDATE fatura.endpoints SET cursor = $3, state = $4, attempts = $5, next_at = $6, error = $7
         WHERE id = $1 AND cursor = $2 AND state = 'active' RETURNING id`,
        [id, since, cursor, state, attempts, next_at, error],
      ),
  }
}

export function endpointCommands(db: Db): EndpointCommands {
  return {
    async addEndpoint({ customers, ...row }) {
      const given = { ...row, customer_ids: customers && JSON.stringify(customers) }
      await insertContents(db, 'endpoints', [kinds.endpoints.columns.map(column => given[column])])
    },
    changeEndpoint: (id, { state, cursor }) =>
      returnsAny(
        db,
        `UPDATE fatura.endpoints SET state = $2, cursor = coalesce($3, cursor), attempts = 0, next_at = NULL, error = NULL
         WHERE id = $1 RETURNING id`,
        [id, state, cursor],
      ),
    removeEndpoint: id => returnsAny(db, 'DELETE FROM fatura.endpoints WHERE id = $1 RETURNING id', [id]),
  }
}
