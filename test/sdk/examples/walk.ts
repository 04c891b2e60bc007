import { createClient } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: process.env.FATURA_TOKEN ?? '',
})

const walk = fatura.invoices.all('cus_ana', { date_from: '2026-01-01', date_to: '2026-12-31' })
let total = 0
for await (const invoice of walk) total += invoice.total_cents
console.log(`${walk.seen} of ${walk.total} invoices: ${total}`)
if (walk.changed) console.log('Something changed on the way: walk again.')
