import type { OutgoingWebhook, WebhookCommands } from '../change-store.ts'
import { kinds } from '../contents.ts'
import type { OperatorStore, WriteTransaction } from '../store.ts'
import { type Db, insertContents, returnsAny } from './db.ts'

type WebhookRow = Omit<OutgoingWebhook, 'customers'> & { customer_ids: string | null }

export function webhookReads(db: Db): Pick<OperatorStore, 'listWebhooks'> {
  return {
    async listWebhooks() {
      const sql = `SELECT ${kinds.outgoingWebhooks.columns.join(', ')} FROM fatura.outgoing_webhooks ORDER BY created_at, id`
      const rows = await db.query<WebhookRow>(sql)
      return rows.map(({ customer_ids, ...row }) => ({
        ...row,
        customers: customer_ids === null ? null : JSON.parse(customer_ids),
      }))
    },
  }
}

export function webhookWrites(db: Db): Pick<WriteTransaction, 'saveDelivery'> {
  return {
    saveDelivery: (id, since, { cursor, state, attempts, next_at, error }) =>
      returnsAny(
        db,
        `UPDATE fatura.outgoing_webhooks SET cursor = $3, state = $4, attempts = $5, next_at = $6, error = $7
         WHERE id = $1 AND cursor = $2 AND state = 'active' RETURNING id`,
        [id, since, cursor, state, attempts, next_at, error],
      ),
  }
}

export function webhookCommands(db: Db): WebhookCommands {
  return {
    async addWebhook({ customers, ...row }) {
      const given = { ...row, customer_ids: customers && JSON.stringify(customers) }
      await insertContents(db, 'outgoingWebhooks', [
        kinds.outgoingWebhooks.columns.map(column => given[column]),
      ])
    },
    changeWebhook: (id, { state, cursor }) =>
      returnsAny(
        db,
        `UPDATE fatura.outgoing_webhooks SET state = $2, cursor = coalesce($3, cursor), attempts = 0, next_at = NULL, error = NULL
         WHERE id = $1 RETURNING id`,
        [id, state, cursor],
      ),
    removeWebhook: id =>
      returnsAny(db, 'DELETE FROM fatura.outgoing_webhooks WHERE id = $1 RETURNING id', [id]),
  }
}
