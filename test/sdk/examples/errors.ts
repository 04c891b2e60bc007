import { createClient, FaturaError } from 'fatura/client'

const fatura = createClient({
  baseUrl: process.env.FATURA_URL ?? 'http://127.0.0.1:3000',
  token: async () => process.env.FATURA_TOKEN ?? '',
})

try {
  await fatura.invoice.get('cus_ana', 'in_unknown', { signal: AbortSignal.timeout(10_000) })
} catch (error) {
  if (!(error instanceof FaturaError)) throw error
  switch (error.code) {
    case 'invoice_not_found':
      console.log(error.status, error.message)
      break
    case 'rate_limited':
      console.log(`Again in ${error.retryAfter} s`)
      break
    default:
      console.log(`Report this with ${error.requestId}: ${error.message}`)
  }
}
