import { createClient } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: process.env.FATURA_TOKEN ?? '',
})

const { data, syncedAt } = await fatura.invoices.list('cus_ana', { status: 'open', page_size: 2 })
for (const { number, total_cents, currency } of data.invoices) console.log(number, total_cents, currency)
console.log(`Page ${data.page} of ${data.total_pages}, as of ${syncedAt?.toISOString()}`)
