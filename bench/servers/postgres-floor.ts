/** Floor 2: node:http and pg, one prepared round trip, rows that are stored as the text that is sent. */
import pg from 'pg'
import { send, serve, writeFirstPage } from './listen.ts'

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 })
const text = `
  SELECT total, (
    SELECT string_agg(summary, ',') FROM (
      SELECT summary FROM rows WHERE customer_id = $1 ORDER BY issued_at DESC, id DESC LIMIT 10
    ) AS page
  ) AS summaries
  FROM totals WHERE customer_id = $1`

serve(async (customerId, response) => {
  const { rows } = await pool.query({ name: 'page', text, values: [customerId] })
  send(response, writeFirstPage(rows[0].summaries, Number(rows[0].total)))
})
