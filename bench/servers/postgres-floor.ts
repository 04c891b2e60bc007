/** Floor 2: node:http and pg, one prepared round trip, rows that are stored as the text that is sent. */
import pg from 'pg'
import { type Question, send, serve, writePage } from './listen.ts'

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 })
const summaries = (rest: string, skip: string) => `(
  SELECT string_agg(summary, ',') FROM (
    SELECT summary FROM rows WHERE customer_id = $1 ${rest} ORDER BY issued_at DESC, id DESC LIMIT 10 ${skip}
  ) AS page) AS summaries`
const whole = {
  name: 'page',
  text: `SELECT total, ${summaries('', 'OFFSET $2')} FROM totals WHERE customer_id = $1`,
}
const paid = {
  name: 'paid',
  text: `
    SELECT (SELECT count(*) FROM rows WHERE customer_id = $1 AND status = 'paid') AS total, ${summaries("AND status = 'paid'", '')}`,
}

const read: Record<Question, (customerId: string) => Promise<pg.QueryResult>> = {
  '': customerId => pool.query({ ...whole, values: [customerId, 0] }),
  '?page=2': customerId => pool.query({ ...whole, values: [customerId, 10] }),
  '?status=paid': customerId => pool.query({ ...paid, values: [customerId] }),
}

serve(async (customerId, question, response) => {
  const { rows } = await read[question](customerId)
  send(response, writePage(rows[0].summaries, Number(rows[0].total), question))
})
