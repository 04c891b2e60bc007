import { Command } from 'commander'
import { readWholeFlag } from '../settings/parsers.ts'
import { waitForSignal } from '../start/signals.ts'
import { CliError } from '../terminal/cli-error.ts'

const stripeKey = 'sk_test_sandbox'
const documentsKey = 'ix_test_sandbox'
const maxCount = 1_000_000

export const sandboxCommand = () =>
  new Command('sandbox')
    .description(
      'Run a local Stripe and a local InvoiceXpress with invented invoices and documents, for tests without real keys. The data is lost at the end.',
    )
    .option('--port <port>', 'the port of the local Stripe (0 takes a free port)', '4010')
    .option(
      '--invoicexpress-port <port>',
      'the port of the local InvoiceXpress (default: 4012, or a free port with --port 0)',
    )
    .option('--seed <number>', 'number that the data is made from (the same number gives the same data)', '1')
    .option('--invoices <count>', 'number of invoices at the start', '200')
    .option('--customers <count>', 'number of customers (default: 12, or one for every 25 invoices)')
    .option('--differences <count>', 'number of differences to make between the two systems', '0')
    .action(sandbox)

async function sandbox(options: Record<string, string>): Promise<void> {
  const read = (flag: string, text = '', high = maxCount, low = 0) => readWholeFlag(flag, text, low, high)
  const port = read('--port', options.port, 65_535)
  const { invoicexpressPort = port === 0 ? '0' : '4012' } = options
  const secondPort = read('--invoicexpress-port', invoicexpressPort, 65_535)
  const seed = read('--seed', options.seed, 2 ** 32 - 1)
  const invoices = read('--invoices', options.invoices)
  const given = options.customers
  const customers = given === undefined ? {} : { customers: read('--customers', given, maxCount, 1) }
  const differences = read('--differences', options.differences)
  const signal = waitForSignal()
  const { createDocuments } = await import('../../../sandbox/invoicexpress/account.ts')
  const { startInvoiceXpressSandbox } = await import('../../../sandbox/invoicexpress/server.ts')
  const { createAccount } = await import('../../../sandbox/stripe/account.ts')
  const { startStripeSandbox } = await import('../../../sandbox/stripe/server.ts')

  const account = createAccount({ seed, invoices, ...customers })
  // `createDocuments` throws when the wanted differences need more invoices than there are.
  const documents = await Promise.try(createDocuments, account, { seed, differences }).catch(error => {
    throw new CliError(`--differences is too high for this number of invoices: ${error.message}`)
  })
  const stripe = await startStripeSandbox({ account, seed, port }).catch(refusePort('port', port))
  const second = { documents, seed, port: secondPort }
  const invoiceXpress = await startInvoiceXpressSandbox(second)
    .catch(refusePort('invoicexpress-port', secondPort))
    .catch(async error => {
      await stripe.close()
      throw error
    })
  const size = `${account.invoices.size} invoices of ${account.customers.size} customers, and ${documents.documents.size} documents`
  process.stdout.write(introduce(stripe.address, invoiceXpress.address, size, account.clock))
  await signal
  await Promise.all([stripe.close(), invoiceXpress.close()])
  process.stdout.write('\nThe sandbox stopped. Its data is removed.\n')
}

function refusePort(option: string, port: number) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code === 'EADDRINUSE' || error.code === 'EACCES')
      throw new CliError(`Port ${port} cannot be used (${error.code}). Choose another port with --${option}.`)
    throw error
  }
}

function introduce(stripe: string, documents: string, size: string, clock: number): string {
  const post = (address: string, path: string) => `  curl -s -X POST '${address}/_sandbox/${path}'\n`
  return `
A local Stripe is listening at ${stripe}
A local InvoiceXpress is listening at ${documents}

  ${size}
  Their clock shows ${new Date(clock * 1000).toISOString()}

Point the connector at them:
  export STRIPE_API_BASE=${stripe} STRIPE_API_KEY=${stripeKey}
  export INVOICEXPRESS_API_BASE=${documents} INVOICEXPRESS_API_KEY=${documentsKey} INVOICEXPRESS_ACCOUNT=sandbox

Look at them:
  curl -s -u ${stripeKey}: '${stripe}/v1/invoices?limit=3'
  curl -s '${documents}/invoices.json?per_page=3&api_key=${documentsKey}'

Move the clock one day forward, and make the documents follow:
${post(stripe, 'advance?seconds=86400')}${post(documents, 'follow')}
Make requests fail twice, and end the failures:
${post(stripe, 'faults?route=list_invoices&fault=error_500&times=2')}${post(stripe, 'clear')}${post(documents, 'faults?route=ix_list&fault=too_many&times=2')}${post(documents, 'clear')}
Send Stripe's events to a webhook, signed:
${post(stripe, 'subscribe?url=http://127.0.0.1:4011/&secret=whsec_sandbox')}${post(stripe, 'deliver?order=shuffled&duplicate=0.2')}
Ctrl-C stops both.
`
}
