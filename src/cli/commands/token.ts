import { Command } from 'commander'
import { createToken, isToken, readTokenId } from '../../access/token.ts'
import { isCustomerId } from '../../invoice.ts'
import { openOperatorStore, openWriteStore } from '../../store/engines.ts'
import type { OperatorStore, StoredToken } from '../../store/store.ts'
import { addSettings } from '../settings/options.ts'
import type { Options } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { hideSecrets } from '../terminal/hide-secrets.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'
import { withStore } from '../wiring/with-store.ts'

const used = ['DATABASE_URL'] as const

export const createFlag = 'make the store, where there is none yet'

export function tokenCommand(): Command {
  const create = new Command('create')
    .description(
      'Make a token and print it, alone, on standard output. It is shown once: only a hash is kept.',
    )
    .option('--customer <id>', 'a customer the token may read; give it again for more', collect)
    .option('--all-customers', 'the token may read every customer')
    .option('--name <name>', 'what the token is for; the list shows it')
    .option('--expires <when>', 'when it expires: a number and h or d, such as 90d; or never', '90d')
    .option('--json', 'one JSON object with the token in it, instead of the token alone')
    .option('--create', createFlag)
    .action(createOne)
  const list = new Command('list')
    .description('List the tokens, newest first. The tokens themselves are not kept and cannot be shown.')
    .option('--json', 'one JSON object a line')
    .action(listAll)
  const revoke = new Command('revoke')
    .description('End a token at once: every running process refuses it within a second.')
    .argument('<token>', 'the id that list shows, which is the start of the token; or the whole token')
    .option('--json', 'one JSON object')
    .action(revokeOne)
  for (const command of [create, list, revoke]) addSettings(command, used)
  return new Command('token')
    .description('Make, list and revoke access tokens.')
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke)
}

/** Without a default: the help would show an empty list as one. */
function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value]
}

interface CreateOptions extends Options {
  customer?: string[]
  allCustomers?: true
  name?: string
  expires: string
  json?: true
  create?: true
}

async function createOne(options: CreateOptions): Promise<void> {
  const now = Date.now()
  const customers = readScope(options)
  const expires_at = readExpiry(options.expires, now)
  const name = options.name ?? ''
  if (!/^[^\p{Cc}]{0,100}$/u.test(name))
    throw new CliError('--name must be one line of at most 100 characters.')
  if (hideSecrets(name) !== name)
    throw new CliError('--name must not hold a token, a key or a password: lists show it.')
  const { id, token, hash } = createToken()
  await withStore(options, openWriteStore, async store => {
    await store.saveToken({ id, name, hash, customers, created_at: now, expires_at, revoked_at: null })
    await warnOfUnknown(store, customers ?? [])
  })
  if (options.json === true) {
    process.stdout.write(jsonLine({ id, token, name, customers, expires_at }))
    return
  }
  process.stderr.write(
    `Token ${id} may read ${describeScope(customers)}; it expires ${describeMoment(expires_at)}. Keep it: it is not shown again.\n`,
  )
  process.stdout.write(`${token}\n`)
}

/** A customer may come later; or it is a typing error. */
export async function warnOfUnknown(store: OperatorStore, customers: readonly string[]): Promise<void> {
  const known = new Set(await store.findCustomers(customers))
  const unknown = customers.filter(id => !known.has(id))
  if (unknown.length === 0) return
  const others = unknown.length > maxNamed ? ` and ${unknown.length - maxNamed} more` : ''
  process.stderr.write(
    `The store holds no invoice of ${unknown.slice(0, maxNamed).join(', ')}${others}. Check the ID, unless the first invoice is still to come.\n`,
  )
}

const maxNamed = 5

function readScope({ customer = [], allCustomers }: CreateOptions): string[] | null {
  if (allCustomers === true && customer.length > 0)
    throw new CliError('Use --customer or --all-customers, not both.')
  if (allCustomers === true) return null
  if (customer.length === 0)
    throw new CliError(
      'Say which customers the token may read: --customer cus_… (repeatable), or --all-customers.',
    )
  const bad = customer.find(id => !isCustomerId(id))
  if (bad !== undefined) throw new CliError(`--customer must be an ID that begins with cus_, not '${bad}'.`)
  return [...new Set(customer)]
}

const units: Record<string, number> = { h: 3_600_000, d: 86_400_000 }

export function readExpiry(text: string, now: number): number | null {
  if (text === 'never') return null
  const [, count, unit = ''] = /^([1-9]\d{0,4})([hd])$/.exec(text) ?? []
  const length = units[unit]
  if (count === undefined || length === undefined)
    throw new CliError(`--expires must be a number and h or d, such as 12h or 90d, or never, not '${text}'.`)
  return now + Number(count) * length
}

async function listAll(options: { json?: true } & Options): Promise<void> {
  const tokens = await withStore(options, openOperatorStore, store => store.listTokens())
  if (options.json === true) {
    for (const { hash, ...token } of tokens)
      process.stdout.write(jsonLine({ ...token, state: stateOf(token) }))
    return
  }
  if (tokens.length === 0) {
    process.stdout.write('There are no tokens yet. Make one with: fatura token create --customer cus_…\n')
    return
  }
  const rows = tokens.map(token => [
    token.id,
    stateOf(token),
    describeMoment(token.expires_at),
    describeScope(token.customers),
    token.name,
  ])
  process.stdout.write(formatTable([['ID', 'STATE', 'EXPIRES', 'MAY READ', 'NAME'], ...rows]))
}

async function revokeOne(idOrToken: string, options: { json?: true } & Options): Promise<void> {
  const id = readId(idOrToken.trim())
  const token = await withStore(options, openWriteStore, store => store.revokeToken(id, Date.now()))
  if (token === null) throw new CliError(`There is no token ${id}. "fatura token list" shows them.`)
  const { hash, ...shown } = token
  process.stdout.write(
    options.json === true
      ? jsonLine({ ...shown, state: stateOf(token) })
      : `Revoked ${id}: every process refuses it within a second.\n`,
  )
}

/** What is neither is not repeated: it may hold a part of a secret. */
export function readId(idOrToken: string): string {
  if (isToken(idOrToken)) return readTokenId(idOrToken)
  if (/^fat_[0-9A-Za-z]{12}$/.test(idOrToken)) return idOrToken
  throw new CliError(
    'This is neither a whole token nor the id of one, which is its first 16 characters: fat_ and 12 more. "fatura token list" shows the ids.',
  )
}

function stateOf({ revoked_at, expires_at }: Pick<StoredToken, 'revoked_at' | 'expires_at'>): string {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && expires_at <= Date.now() ? 'expired' : 'active'
}

export function describeScope(customers: readonly string[] | null): string {
  return customers === null ? 'every customer' : customers.join(', ')
}

function describeMoment(at: number | null): string {
  return at === null ? 'never' : new Date(at).toISOString()
}
