import { readFile } from 'node:fs/promises'
import { isCustomerId, isInvoiceId } from '../../domain/invoice.ts'
import { maxLinkSeconds } from '../../http/access/link-form.ts'
import { createLink, type LinkKey, readLinkKey } from '../../sdk/link.ts'
import { parseDurationMs } from '../settings/parsers.ts'
import { readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

const used = ['PUBLIC_URL', 'CUSTOMER_LINK_KEY'] as const

export const linkCommand = () =>
  new SettingsCommand('link')
    .description(
      'Make a link that shows a customer their invoices, and print it on standard output. Everybody who has the link can read the invoices until it expires.',
    )
    .requiredOption('--customer <id>', 'the customer whose invoices it shows, cus_…')
    .option('--invoice <id>', 'show only this invoice of the customer, in_… (default: all invoices)')
    .option('--ttl <time>', 'how long the link works: a number and s, m or h, at most 24h', '1h')
    .option(
      '--key <file>',
      'a file with the private key that "fatura key add" printed (default: the setting CUSTOMER_LINK_KEY)',
    )
    .action(printLink)
    .settings(used)

async function printLink(options: Record<string, string>): Promise<void> {
  const { customer = '', invoice, ttl = '', key: keyFile } = options
  if (!isCustomerId(customer))
    throw new CliError(`--customer must be an ID that begins with cus_, not '${printable(customer)}'.`)
  if (invoice !== undefined && !isInvoiceId(invoice))
    throw new CliError(`--invoice must be an ID that begins with in_, not '${printable(invoice)}'.`)
  const ttlSeconds = readTtlSeconds(ttl)
  const { PUBLIC_URL: publicUrl, CUSTOMER_LINK_KEY } = readSettings(options, used)
  const key = keyFile === undefined ? CUSTOMER_LINK_KEY : await readKeyFile(keyFile)
  if (key === null)
    throw new CliError(
      'CUSTOMER_LINK_KEY is not set. Set it to the private key that "fatura key add NAME" prints, or name a file with this key in --key.',
    )
  if (publicUrl === null)
    throw new CliError(
      'PUBLIC_URL is not set. Set it to the address under which customers reach the service, such as https://billing.example.com.',
    )
  process.stdout.write(`${await createLink({ key, publicUrl, customer, invoice, ttlSeconds })}\n`)
}

function readTtlSeconds(text: string): number {
  const seconds = /^[1-9]\d{0,5}[smhd]$/.test(text) ? parseDurationMs(text) / 1_000 : Number.POSITIVE_INFINITY
  if (seconds <= maxLinkSeconds) return seconds
  throw new CliError(
    `--ttl must be a number and s, m or h, such as 30m or 1h, and at most 24h, not '${printable(text)}'.`,
  )
}

/** Reads a key from a file. Messages never repeat the file's content, and do not repeat a path that may be the key itself. */
async function readKeyFile(path: string): Promise<LinkKey> {
  if (path.includes('"'))
    throw new CliError(
      '--key must name a file, not the key itself. To give the key itself, set CUSTOMER_LINK_KEY in the environment.',
    )
  const text = await readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
    throw new CliError(
      `The file '${printable(path)}' cannot be read (${code}). --key must name a file that holds the output of "fatura key add".`,
    )
  })
  try {
    return readLinkKey(text)
  } catch {
    throw new CliError(
      `The file '${printable(path)}' holds no private key for customer links. It must hold the output of "fatura key add": JSON with kty, crv, kid, x and d.`,
    )
  }
}
