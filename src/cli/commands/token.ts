import { isCustomerId } from '../../domain/invoice.ts'
import { createToken, isToken, readTokenId } from '../../http/access/token.ts'
import type { StoredToken } from '../../store/store.ts'
import { parseDurationMs } from '../settings/parsers.ts'
import { type Options, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { checkName, credentialCommand, describeScope, saveCredential } from './credentials.ts'

export function tokenCommand() {
  const create = new SettingsCommand('create')
    .description(
      'Make a token and print it on standard output. It is shown only this one time, because the store keeps only a hash.',
    )
    .option(
      '--customer <id>',
      'the ID of a customer that the token may read (repeat the option for more customers)',
      collect,
    )
    .option('--all-customers', 'let the token read every customer')
    .option('--name <name>', 'the purpose of the token, for example portal (token list shows it)')
    .option(
      '--expires <when>',
      'how long the token works: a number and h or d, for example 90d, or never for no end',
      '90d',
    )
    .option('--json', 'print one JSON object with the token and its details, instead of only the token')
    .action(createOne)
  return credentialCommand({
    noun: 'token',
    description: 'Make, list and revoke access tokens.',
    make: create,
    example: 'fatura token create --customer cus_…',
    secret: 'The tokens themselves',
    refused: 'it',
    id: ['<token>', 'the ID of the token ("fatura token list" shows it) or the whole token'],
    readId,
    list: store => store.listTokens(),
    revoke: (store, id, now) => store.revokeToken(id, now),
    show: ({ hash, ...token }) => ({ ...token, state: stateOf(token) }),
    header: ['ID', 'STATE', 'EXPIRES', 'MAY READ', 'NAME'],
    cells: token => [
      token.id,
      stateOf(token),
      describeMoment(token.expires_at),
      describeScope(token.customers),
      token.name,
    ],
  })
}

/** The option `--customer` has no default value, because the help would show an empty list as the default. */
function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value]
}

interface CreateOptions extends Options {
  customer?: string[]
  name?: string
  expires: string
}

async function createOne(options: CreateOptions): Promise<void> {
  const now = Date.now()
  const customers = readScope(options)
  const expires_at = readExpiry(options.expires, now)
  const { name = '' } = options
  checkName('--name', name, 0)
  const { id, token, hash } = createToken()
  await saveCredential(options, customers, store =>
    store.saveToken({ id, name, hash, customers, created_at: now, expires_at, revoked_at: null }),
  )
  if (options.json === true) {
    process.stdout.write(jsonLine({ id, token, name, customers, expires_at }))
    return
  }
  process.stderr.write(
    `Token ${id} may read ${describeScope(customers)}. Expires: ${describeMoment(expires_at)}. Save it now, because it is not shown again.\n`,
  )
  process.stdout.write(`${token}\n`)
}

function readScope({ customer = [], allCustomers }: CreateOptions): string[] | null {
  if (allCustomers === true && customer.length > 0)
    throw new CliError('Use --customer or --all-customers, not both.')
  if (allCustomers === true) return null
  if (customer.length === 0)
    throw new CliError(
      'Name the customers that the token may read: --customer cus_… (repeatable), or --all-customers.',
    )
  const bad = customer.find(id => !isCustomerId(id))
  if (bad !== undefined) throw new CliError(`--customer must be an ID that begins with cus_, not '${bad}'.`)
  return [...new Set(customer)]
}

export function readExpiry(text: string, now: number): number | null {
  if (text === 'never') return null
  if (!/^[1-9]\d{0,4}[hd]$/.test(text))
    throw new CliError(`--expires must be a number and h or d, such as 12h or 90d, or never, not '${text}'.`)
  return now + parseDurationMs(text)
}

/** Throws when the text is not a token or a token's id. The message does not repeat the text, because it may hold part of a secret. */
export function readId(idOrToken: string): string {
  if (isToken(idOrToken)) return readTokenId(idOrToken)
  if (/^fat_[0-9A-Za-z]{12}$/.test(idOrToken)) return idOrToken
  throw new CliError(
    'This is not a token and not the ID of a token. An ID is the first 16 characters of a token: fat_ and 12 more. "fatura token list" shows the IDs.',
  )
}

function stateOf({ revoked_at, expires_at }: Pick<StoredToken, 'revoked_at' | 'expires_at'>): string {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && expires_at <= Date.now() ? 'expired' : 'active'
}

function describeMoment(at: number | null): string {
  return at === null ? 'never' : new Date(at).toISOString()
}
