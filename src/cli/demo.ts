import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { createToken } from '../access/token.ts'
import { sampleCustomers, sampleInvoices } from '../sandbox/sample-invoices.ts'
import { migrateStore, openWriteStore } from '../store/open-store.ts'
import { CliError } from './cli-error.ts'
import { isSet, readHost, readLogLevel, readPort, readRateLimit } from './config.ts'
import { createLog } from './log.ts'
import { addSettings, readFlags } from './options.ts'
import { waitForSignal } from './signals.ts'
import { createTemporaryFolder } from './temporary-folder.ts'

export function demoCommand(): Command {
  return addSettings(
    new Command('demo').description(
      'Serve sample data from a temporary store; Ctrl-C removes every trace of it. Requests are logged with LOG_LEVEL=info.',
    ),
    'HOST',
    'PORT',
    'RATE_LIMIT',
    'LOG_LEVEL',
  ).action(demo)
}

async function demo(options: Record<string, unknown>): Promise<void> {
  const flags = readFlags(options)
  const host = readHost(flags)
  const port = readPort(flags)
  const rateLimit = readRateLimit(flags)
  // The page of instructions is what is to be read, so requests are logged only when asked for.
  const log = createLog(isSet('LOG_LEVEL', flags) ? readLogLevel(flags) : 'warn')

  const signal = waitForSignal()
  const folder = await createTemporaryFolder('fatura-demo-')
  try {
    const url = `sqlite:${join(folder, 'fatura.db')}`
    const token = await fillStore(url)
    const { startApi } = await import('./start-api.ts')
    const api = { url, host, rateLimit, log }
    const { address, stop } = await startApi({ ...api, port }).catch(error => {
      // Nobody chose the default port, so when it is taken any other does as well.
      if (isSet('PORT', flags) || !(error instanceof CliError)) throw error
      return startApi({ ...api, port: 0 })
    })
    process.stdout.write(introduce(address, token))
    await signal
    await stop()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  process.stdout.write('\nStopped; nothing is left behind.\n')
}

/** Returns a token that may read every sample customer. */
async function fillStore(url: string): Promise<string> {
  const { id, token, hash } = createToken()
  const now = Date.now()
  await migrateStore(url)
  const store = await openWriteStore(url)
  await store.transaction(async tx => {
    await tx.saveInvoices([...sampleInvoices()])
    await tx.saveSuccess('demo', now)
  })
  const customers = sampleCustomers.map(({ customer_id }) => customer_id)
  await store.saveToken({
    id,
    name: 'demo',
    hash,
    customers,
    created_at: now,
    expires_at: null,
    revoked_at: null,
  })
  await store.close()
  return token
}

function introduce(address: string, token: string): string {
  const base = `${address}/api/v1/client`
  const curl = (path: string) => `  curl -s -H 'Authorization: Bearer ${token}' '${base}/${path}'\n`
  const customers = sampleCustomers.map(
    ({ customer_id, company_name, customer_name, currency, invoices }) =>
      `  ${customer_id.padEnd(16)}${String(invoices).padStart(3)} invoices in ${currency}   ${company_name ?? customer_name}\n`,
  )
  return `
Fatura is serving sample data at ${address}

${customers.join('')}
A token for these customers, until you stop the demo:
  ${token}

Paste these into another terminal:

A billing history, newest first:
${curl('cus_SaoBento01/invoices?page_size=3')}
What was paid in 2025 and has its certified document settled:
${curl('cus_SaoBento01/invoices?status=paid&ix_status=settled&date_from=2025-01-01&date_to=2025-12-31&page_size=3')}
Search without minding case, accents or separators:
${curl('cus_Evora02/invoices?q=CONSTRUCOES%202025&page_size=3')}
One invoice whole, with its lines and where its PDFs are:
${curl('cus_Tokyo03/invoice/in_Sample0173')}
Somebody else's invoice does not exist for you:
${curl('cus_Kuwait04/invoice/in_Sample0173')}
The API's description: ${address}/api/v1/openapi.json

Ctrl-C stops the demo and removes its data.
`
}
