import { Command } from 'commander'
import { CliError } from './cli-error.ts'
import { waitForSignal } from './signals.ts'

const key = 'sk_test_sandbox'
const most = 1_000_000

export function sandboxCommand(): Command {
  return new Command('sandbox')
    .description('Run a local Stripe with invented invoices, for those who have no keys. Keeps nothing.')
    .option('--port <port>', 'the port to listen on; 0 takes a free one', '4010')
    .option('--seed <number>', 'the same number gives the same account', '1')
    .option('--invoices <count>', 'how many invoices it begins with', '200')
    .option(
      '--customers <count>',
      'how many customers they are of (default: 12, or one for every 25 invoices)',
    )
    .action(sandbox)
}

async function sandbox(options: Record<string, string>): Promise<void> {
  const port = readWhole(options, 'port', 0, 65_535)
  const account = {
    seed: readWhole(options, 'seed', 0, 2 ** 32 - 1),
    invoices: readWhole(options, 'invoices', 0, most),
    ...(options.customers === undefined ? {} : { customers: readWhole(options, 'customers', 1, most) }),
  }
  const signal = waitForSignal()
  const { startStripeSandbox } = await import('../sandbox/stripe-server.ts')
  const started = await startStripeSandbox({ ...account, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE' || error.code === 'EACCES')
      throw new CliError(`Port ${port} cannot be used (${error.code}); choose another with --port.`)
    throw error
  })
  process.stdout.write(introduce(started.address, started.account))
  await signal
  await started.close()
  process.stdout.write('\nStopped; nothing is left behind.\n')
}

function readWhole(options: Record<string, string>, name: string, low: number, high: number): number {
  const text = options[name] ?? ''
  const value = Number(text)
  if (!/^\d{1,10}$/.test(text) || value < low || value > high)
    throw new CliError(`--${name} must be a whole number from ${low} to ${high}, not '${text}'.`)
  return value
}

interface Size {
  clock: number
  invoices: ReadonlyMap<string, unknown>
  customers: ReadonlyMap<string, unknown>
}

function introduce(address: string, { clock, invoices, customers }: Size): string {
  const post = (path: string) => `  curl -s -X POST '${address}/_sandbox/${path}'\n`
  return `
A local Stripe is listening at ${address}

  ${invoices.size} invoices of ${customers.size} customers; its clock stands at ${new Date(clock * 1000).toISOString()}
  Its key: ${key}

Point the connector at it:
  export STRIPE_API_BASE=${address} STRIPE_API_KEY=${key}

Look at it:
  curl -s -u ${key}: '${address}/v1/invoices?limit=3'

Let a day pass:
${post('advance?seconds=86400')}
Let something go wrong, twice, and mend it:
${post('faults?route=list_invoices&fault=error_500&times=2')}${post('clear')}
Have its events sent to a webhook, signed:
${post('subscribe?url=http://127.0.0.1:4011/&secret=whsec_sandbox')}${post('deliver?order=shuffled&duplicate=0.2')}
Ctrl-C stops it.
`
}
