import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: process.env.FATURA_TOKEN ?? '',
})

const { data } = await fatura.invoice.get('cus_ana', 'in_3')
for (const { description, amount_cents } of data.lines) console.log(description, amount_cents)

const pdf = await fatura.downloadPdf('cus_ana', 'in_3', 'ix', {
  onWait: (_error, waitMs) => console.log(`Not ready; again in ${Math.floor(waitMs / 1000)} s`),
})
await writeFile(join(tmpdir(), pdf.fileName), pdf.body)
console.log(pdf.fileName)
