import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isSet, type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { waitForSignal } from '../start/signals.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog } from '../terminal/log.ts'
import { movingLine, printResult } from '../terminal/progress.ts'
import type { DemoSystems } from './demo-systems.ts'
import { createTemporaryFolder } from './temporary-folder.ts'

const used = ['HOST', 'PORT', 'RATE_LIMIT', 'LOG_LEVEL'] as const

export const demoCommand = () =>
  new SettingsCommand('demo')
    .description(
      'Start Fatura with sample data from a local Stripe and a local InvoiceXpress. All files are in a temporary folder, and Ctrl-C removes it. Set LOG_LEVEL=info to log requests.',
    )
    .settings(used)
    .action(demo)

async function demo(options: Options): Promise<void> {
  // The demo does not read `.env`, so it cannot use the keys or the address of a real service beside it.
  const settings = readSettings(options, used, { envFile: false })
  const { HOST: host, PORT: port, RATE_LIMIT: rateLimit } = settings
  // Requests are logged only with LOG_LEVEL, so that the instructions stay visible.
  const log = createLog(isSet('LOG_LEVEL', options) ? settings.LOG_LEVEL : 'error')

  const signal = waitForSignal()
  const folder = await createTemporaryFolder('fatura-demo-')
  try {
    const url = `sqlite:${join(folder, 'fatura.db')}`
    const { demoBrand, startDemoSystems } = await import('./demo-systems.ts')
    const { startApi } = await import('../start/start-api.ts')
    const systems = await startDemoSystems(url, log, showEvents())
    try {
      const { stripe, invoiceXpress } = systems
      const api = { url, host, rateLimit, web: true, brand: demoBrand, log, stripe, invoiceXpress }
      const { address, stop } = await startApi({ ...api, port }).catch(error => {
        // When the default port is in use, any other port is accepted, because the user did not choose the default.
        if (isSet('PORT', options) || !(error instanceof CliError)) throw error
        return startApi({ ...api, port: 0 })
      })
      process.stdout.write(introduce(address, systems))
      systems.startChanging()
      await signal
      await stop()
    } finally {
      await systems.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  printResult('\nThe demo stopped. Its data is removed.\n')
}

/** The introduction fits a screen of 40 rows with 80 characters. */
function introduce(address: string, { token, customers, sample }: DemoSystems): string {
  const curl = (path: string, more = '') =>
    `  curl -s${more} -H "Authorization: Bearer $TOKEN" "$API/${path}"\n`
  const lines = customers.map(
    ({ customer_id, name, currency, invoices }) =>
      `  ${customer_id.padEnd(20)}${String(invoices).padStart(3)} invoices in ${currency}   ${name}\n`,
  )
  const first = customers[0]?.customer_id
  const other = customers.find(({ customer_id }) => customer_id !== sample.customer_id)
  const lastYear = new Date().getUTCFullYear() - 1
  const invoice = `${sample.customer_id}/invoice/${sample.id}`
  return `
Open this page. After 20 seconds, its invoices begin to change:
  ${address}/#t=${token}&c=${first}
After c= you can write any of these customers:
${lines.join('')}The API's reference, with requests to try:
  ${address}/docs#t=${token}&c=${first}
To send requests, paste these lines into another terminal, the exports first:
  export API=${address}/api/v1/client
  export TOKEN=${token}
A billing history, newest first:
${curl(`${first}/invoices?page_size=3`)}Paid in ${lastYear}, with a settled certified document:
${curl(`${first}/invoices?status=paid&ix_status=settled&date_from=${lastYear}-01-01&date_to=${lastYear}-12-31`)}Search that ignores case, accents and separators:
${curl(`${sample.customer_id}/invoices?q=${encodeURIComponent(plainName(customers, sample.customer_id))}&page_size=3`)}One invoice with its lines, its PDF, and the PDF of its certified document:
${curl(invoice)}${curl(`${invoice}/payments/download`, ' -o invoice.pdf')}${curl(`${invoice}/ix/download`, ' -o document.pdf')}An invoice of another customer is answered with 404:
${curl(`${other?.customer_id}/invoice/${sample.id}`)}Serving at ${address}. Ctrl-C stops the demo and removes its data.
`
}

/**
 * Shows events on the progress line of a terminal. Elsewhere only the first event of each kind is printed, so that the instructions stay
 * visible.
 */
function showEvents(): (event: string) => void {
  const shown = new Set<string>()
  let count = 0
  return event => {
    count++
    const [kind = ''] = event.split(':')
    if (movingLine.canMove) movingLine.draw(`${count} changes so far; ${event}`.slice(0, 79))
    else if (!shown.has(kind)) process.stdout.write(`${event}. More changes follow and are not printed\n`)
    shown.add(kind)
  }
}

/** Returns the first two words of a customer's name in upper case without accents, to show that the search ignores both. */
function plainName(customers: DemoSystems['customers'], customerId: string): string {
  const { name = '' } = customers.find(({ customer_id }) => customer_id === customerId) ?? {}
  const words = name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toUpperCase()
    .split(/[\s,&]+/)
  return words.slice(0, 2).join(' ')
}
