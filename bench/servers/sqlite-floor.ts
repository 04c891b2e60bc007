/** Floor 1: node:http and node:sqlite, one prepared statement a question, rows that are stored as the text that is sent. */
import { DatabaseSync } from 'node:sqlite'
import { type Question, send, serve, writePage } from './listen.ts'

const db = new DatabaseSync(process.argv[2] as string, { readOnly: true })
const summaries = (rest: string) => `(
  SELECT group_concat(summary, ',') FROM (
    SELECT summary FROM rows WHERE customer_id = ?1 ${rest} ORDER BY issued_at DESC, id DESC LIMIT 10 ${rest === '' ? 'OFFSET ?2' : ''}
  )) AS summaries`
const whole = db.prepare(`SELECT total, ${summaries('')} FROM totals WHERE customer_id = ?1`)
const paid = db.prepare(`
  SELECT (SELECT count(*) FROM rows WHERE customer_id = ?1 AND status = 'paid') AS total, ${summaries("AND status = 'paid'")}`)

const read: Record<Question, (customerId: string) => unknown> = {
  '': customerId => whole.get(customerId, 0),
  '?page=2': customerId => whole.get(customerId, 10),
  '?status=paid': customerId => paid.get(customerId),
}

serve((customerId, question, response) => {
  const { total, summaries } = read[question](customerId) as { total: number; summaries: string }
  send(response, writePage(summaries, total, question))
})
