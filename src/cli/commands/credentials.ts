/** Builds the commands `fatura token` and `fatura key` with their subcommands. `fatura webhook` uses `listCommand` as well. */
import { isMissing, openOperatorStore, openWriteStore, prepareStore, useStore } from '../../store/engines.ts'
import type { OperatorStore, WriteStore } from '../../store/store.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { hideSecrets } from '../terminal/hide-secrets.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { printWaiting } from '../terminal/progress.ts'
import { formatTable } from '../terminal/table.ts'

/** Opens and prepares the store for a short command, and closes the store at the end. Only `--create` creates a missing store. */
export async function withStore<Store extends { close(): Promise<void> }, T>(
  options: Options & { create?: true },
  open: (url: string, wait: { onWait: typeof printWaiting }) => Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const isNew = isMissing(url)
  if (isNew && options.create !== true)
    throw new CliError(
      `There is no store at ${url}. Set DATABASE_URL to the address of your store. To create a new store, run "fatura migrate", or add --create to "token create" or "key add".`,
    )
  await prepareStore(url, { onWait: printWaiting })
  if (isNew) process.stderr.write(`There was no store. ${url} was created.\n`)
  return useStore(open(url, { onWait: printWaiting }), work)
}

interface Listed<Row> {
  description: string
  list(store: OperatorStore): Promise<Row[]>
  none: string
  /** Fields for `--json`. The object must not contain a secret. */
  show(row: Row): object
  header: readonly string[]
  cells(row: Row): string[]
}

export function listCommand<Row>(kind: Listed<Row>): SettingsCommand {
  return new SettingsCommand('list')
    .description(kind.description)
    .option('--json', 'print one JSON object per line')
    .settings(['DATABASE_URL'])
    .action(async (options: { json?: true } & Options) => {
      const rows = await withStore(options, openOperatorStore, kind.list)
      if (options.json === true) process.stdout.write(rows.map(row => jsonLine(kind.show(row))).join(''))
      else if (rows.length === 0) process.stdout.write(`${kind.none}\n`)
      else process.stdout.write(formatTable([kind.header, ...rows.map(kind.cells)]))
    })
}

export interface Credential<Row> extends Omit<Listed<Row>, 'none'> {
  noun: 'token' | 'key'
  make: SettingsCommand
  /** Command that makes the first credential. */
  example: string
  /** Name of the part that only the owner has, for example "The tokens themselves". */
  secret: string
  /** What processes refuse after a revocation, for example "its links". Messages write it after the word "refuse". */
  refused: string
  id: [argument: string, description: string]
  /** Throws for a text that is not an id. */
  readId(text: string): string
  revoke(store: WriteStore, id: string, now: number): Promise<Row | null>
}

export function credentialCommand<Row>(kind: Credential<Row>) {
  const { noun } = kind
  const list = listCommand({
    ...kind,
    description: `List the ${noun}s, newest first. ${kind.secret} are not stored and cannot be shown.`,
    none: `There are no ${noun}s yet. Make one with: ${kind.example}`,
  })
  const revoke = new SettingsCommand('revoke')
    .description(`Revoke a ${noun}. All running processes refuse ${kind.refused} within a second.`)
    .argument(...kind.id)
    .option('--json', 'print one JSON object')
    .action(revokeOne)
  kind.make.option('--create', 'create the store if there is none yet')
  return new SettingsCommand(noun)
    .description(kind.description)
    .addCommand(kind.make.settings(['DATABASE_URL']))
    .addCommand(list)
    .addCommand(revoke.settings(['DATABASE_URL']))

  async function revokeOne(text: string, options: { json?: true } & Options): Promise<void> {
    const id = kind.readId(text.trim())
    const row = await withStore(options, openWriteStore, store => kind.revoke(store, id, Date.now()))
    if (row === null) throw new CliError(`There is no ${noun} ${id}. "fatura ${noun} list" shows them.`)
    process.stdout.write(
      options.json === true
        ? jsonLine(kind.show(row))
        : `Revoked ${id}. All running processes refuse ${kind.refused} within a second.\n`,
    )
  }
}

/** Saves a new credential and warns about customers without invoices. Their first invoice may come later, or the id may be misspelt. */
export async function saveCredential(
  options: Options,
  customers: readonly string[] | null,
  save: (store: WriteStore) => Promise<void>,
): Promise<void> {
  await withStore(options, openWriteStore, async store => {
    await save(store)
    const known = new Set(await store.findCustomers(customers ?? []))
    const unknown = (customers ?? []).filter(id => !known.has(id))
    if (unknown.length === 0) return
    const others = unknown.length > maxNamed ? ` and ${unknown.length - maxNamed} more` : ''
    process.stderr.write(
      `The store holds no invoice of ${unknown.slice(0, maxNamed).join(', ')}${others}. Check the ID. It is correct if the customer has no invoices yet.\n`,
    )
  })
}

const maxNamed = 5

/** `what` names the value in messages, for example "--name". */
export function checkName(what: string, name: string, shortest: number): void {
  if (!/^[^\p{Cc}]{0,100}$/u.test(name) || name.length < shortest)
    throw new CliError(
      `${what} must be one line of ${shortest === 0 ? 'at most' : `${shortest} to`} 100 characters.`,
    )
  if (hideSecrets(name) !== name)
    throw new CliError(`${what} must not contain a token, a key or a password, because lists show it.`)
}

export function describeScope(customers: readonly string[] | null): string {
  return customers === null ? 'every customer' : customers.join(', ')
}
