/** Floor 1: node:http and node:sqlite, one prepared statement, rows that are stored as the text that is sent. */
import { DatabaseSync } from 'node:sqlite'
import { send, serve, writeFirstPage } from './listen.ts'

const db = new DatabaseSync(process.argv[2] as string, { readOnly: true })
const page = db.prepare(`
  SELECT total, (
    SELECT group_concat(summary, ',') FROM (
      SELECT summary FROM rows WHERE customer_id = ?1 ORDER BY issued_at DESC, id DESC LIMIT 10
    )
  ) AS summaries
  FROM totals WHERE customer_id = ?1`)

serve((customerId, response) => {
  const { total, summaries } = page.get(customerId) as { total: number; summaries: string }
  send(response, writeFirstPage(summaries, total))
})
