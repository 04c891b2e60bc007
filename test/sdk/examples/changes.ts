import { createClient } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: process.env.FATURA_TOKEN ?? '',
})

for await (const { cursor, kind, invoice_id } of fatura.changes({ customer: 'cus_ana', after: '0' })) {
  console.log(kind, invoice_id)
  // Keep the cursor once the change is handled: the next start goes on from there.
  if (cursor !== '' && invoice_id === 'in_4') break
}
