import { generateKeyPairSync } from 'node:crypto'
import { Command } from 'commander'
import { createKeyId, isKeyId } from '../../access/link-form.ts'
import { isCustomerId } from '../../invoice.ts'
import { openOperatorStore, openWriteStore } from '../../store/engines.ts'
import { addSettings } from '../settings/options.ts'
import type { Options } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { hideSecrets } from '../terminal/hide-secrets.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'
import { withStore } from '../wiring/with-store.ts'
import { createFlag, describeScope, warnOfUnknown } from './token.ts'

const used = ['DATABASE_URL'] as const

export function keyCommand(): Command {
  const add = new Command('add')
    .description(
      'Make a key that signs customer links, and print its private half (a JWK), alone, on standard output. It is shown once: the store keeps the public half.',
    )
    .argument('<name>', 'what the key is for; the list shows it')
    .option('--customers <ids>', 'whose links it may sign, separated by commas; every customer unless told')
    .option('--create', createFlag)
    .action(addOne)
  const list = new Command('list')
    .description('List the keys, newest first. Their private halves are not kept and cannot be shown.')
    .option('--json', 'one JSON object a line')
    .action(listAll)
  const revoke = new Command('revoke')
    .description('End a key at once: every running process refuses all of its links within a second.')
    .argument('<id>', 'the id that list shows, key_…')
    .action(revokeOne)
  for (const command of [add, list, revoke]) addSettings(command, used)
  return new Command('key')
    .description('Make, list and revoke keys that sign customer links.')
    .addCommand(add)
    .addCommand(list)
    .addCommand(revoke)
}

async function addOne(name: string, options: { customers?: string; create?: true } & Options): Promise<void> {
  if (!/^[^\p{Cc}]{1,100}$/u.test(name))
    throw new CliError('The name must be one line of 1 to 100 characters.')
  if (hideSecrets(name) !== name)
    throw new CliError('The name must not hold a token, a key or a password: lists show it.')
  const customers = readCustomers(options.customers)
  const kid = createKeyId()
  const { kty, crv, x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  await withStore(options, openWriteStore, async store => {
    await store.saveKey({ kid, name, x: String(x), customers, created_at: Date.now(), revoked_at: null })
    await warnOfUnknown(store, customers ?? [])
  })
  process.stderr.write(
    `Key ${kid} may sign links for ${describeScope(customers)}. Keep it secret, as LINK_KEY of whoever makes links: it is not shown again.\n`,
  )
  process.stdout.write(`${JSON.stringify({ kty, crv, alg: 'EdDSA', use: 'sig', kid, x, d })}\n`)
}

function readCustomers(text: string | undefined): string[] | null {
  if (text === undefined) return null
  const ids = text.split(',').map(id => id.trim())
  const bad = ids.find(id => !isCustomerId(id))
  if (bad !== undefined)
    throw new CliError(
      `--customers must be IDs that begin with cus_, separated by commas, like cus_ana,cus_rui; '${bad}' is none.`,
    )
  return [...new Set(ids)]
}

async function listAll(options: { json?: true } & Options): Promise<void> {
  const keys = await withStore(options, openOperatorStore, store => store.listKeys())
  const stateOf = (revokedAt: number | null) => (revokedAt === null ? 'active' : 'revoked')
  if (options.json === true) {
    for (const key of keys) process.stdout.write(jsonLine({ ...key, state: stateOf(key.revoked_at) }))
    return
  }
  if (keys.length === 0) {
    process.stdout.write('There are no keys yet. Make one with: fatura key add NAME\n')
    return
  }
  const rows = keys.map(({ kid, name, customers, created_at, revoked_at }) => [
    ...[kid, stateOf(revoked_at), new Date(created_at).toISOString(), describeScope(customers), name],
  ])
  process.stdout.write(formatTable([['ID', 'STATE', 'CREATED', 'MAY SIGN FOR', 'NAME'], ...rows]))
}

async function revokeOne(given: string, options: Options): Promise<void> {
  const kid = given.trim()
  // What is none is not repeated: it may be a private key.
  if (!isKeyId(kid))
    throw new CliError(
      'This is not the id of a key, which is key_ and 12 more characters. "fatura key list" shows the ids.',
    )
  const key = await withStore(options, openWriteStore, store => store.revokeKey(kid, Date.now()))
  if (key === null) throw new CliError(`There is no key ${kid}. "fatura key list" shows them.`)
  process.stdout.write(`Revoked ${kid}: every process refuses its links within a second.\n`)
}
