import { setTimeout as wait } from 'node:timers/promises'
import { createClient, type InvoiceList } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: process.env.FATURA_TOKEN ?? '',
})

let shown: InvoiceList | undefined
for (let time = 0; time < 3; time++) {
  const { data } = await fatura.invoices.list('cus_ana')
  if (data !== shown) console.log(`${data.total} invoices`)
  shown = data
  await wait(100)
}
