import { generateKeyPairSync } from 'node:crypto'
import { isCustomerId } from '../../domain/invoice.ts'
import { createKeyId, isKeyId } from '../../http/access/link-form.ts'
import { type Options, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { checkName, credentialCommand, describeScope, saveCredential } from './credentials.ts'

export function keyCommand() {
  const add = new SettingsCommand('add')
    .description(
      'Make a key that signs customer links. The private key (a JWK) is printed on standard output, only this one time. The store keeps only the public key.',
    )
    .argument('<name>', 'the purpose of the key, for example shop-backend (key list shows it)')
    .option(
      '--customers <ids>',
      'the IDs of the customers for whom it may sign links, separated by commas (default: every customer)',
    )
    .action(addOne)
  const stateOf = (revokedAt: number | null) => (revokedAt === null ? 'active' : 'revoked')
  return credentialCommand({
    noun: 'key',
    description: 'Make, list and revoke keys that sign customer links.',
    make: add,
    example: 'fatura key add NAME',
    secret: 'Their private keys',
    refused: 'its links',
    id: ['<id>', 'the ID of the key, key_… ("fatura key list" shows it)'],
    readId,
    list: store => store.listKeys(),
    revoke: (store, kid, now) => store.revokeKey(kid, now),
    show: key => ({ ...key, state: stateOf(key.revoked_at) }),
    header: ['ID', 'STATE', 'CREATED', 'MAY SIGN FOR', 'NAME'],
    cells: ({ kid, name, customers, created_at, revoked_at }) => [
      kid,
      stateOf(revoked_at),
      new Date(created_at).toISOString(),
      describeScope(customers),
      name,
    ],
  })
}

async function addOne(name: string, options: { customers?: string } & Options): Promise<void> {
  checkName('The name', name, 1)
  const customers = readCustomers(options.customers)
  const kid = createKeyId()
  const { kty, crv, x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  await saveCredential(options, customers, store =>
    store.saveKey({ kid, name, x: String(x), customers, created_at: Date.now(), revoked_at: null }),
  )
  process.stderr.write(
    `Key ${kid} may sign links for ${describeScope(customers)}. Keep it secret. Give it as CUSTOMER_LINK_KEY to the program that makes links. It is not shown again.\n`,
  )
  process.stdout.write(`${JSON.stringify({ kty, crv, alg: 'EdDSA', use: 'sig', kid, x, d })}\n`)
}

export function readCustomers(text: string | undefined): string[] | null {
  if (text === undefined) return null
  const ids = text.split(',').map(id => id.trim())
  const bad = ids.find(id => !isCustomerId(id))
  if (bad !== undefined)
    throw new CliError(
      `--customers must be IDs that begin with cus_, separated by commas, for example cus_ana,cus_rui. '${bad}' is not such an ID.`,
    )
  return [...new Set(ids)]
}

/** Throws when the text is not a key's id. The message does not repeat the text, because it may be a private key. */
function readId(kid: string): string {
  if (isKeyId(kid)) return kid
  throw new CliError(
    'This is not the ID of a key. An ID is key_ and 12 more characters. "fatura key list" shows the IDs.',
  )
}
