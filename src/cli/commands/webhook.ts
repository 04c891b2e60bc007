import { randomBytes } from 'node:crypto'
import { isCalendarDay, readMoment } from '../../domain/calendar.ts'
import { findUrlProblem } from '../../export/webhooks/send-webhook.ts'
import { createKeys, publicKeyOf } from '../../export/webhooks/sign-webhook.ts'
import { openWriteStore } from '../../store/engines.ts'
import type { WriteStore } from '../../store/store.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { describeScope, listCommand, saveCredential, withStore } from './credentials.ts'
import { readCustomers } from './key.ts'

export function webhookCommand() {
  const add = new SettingsCommand('add')
    .description(
      'Send a webhook to an address for every change from now on, while "fatura sync" or "fatura up" runs. The command prints the ID and the keys that verify signatures.',
    )
    .argument('<url>', 'the https address that gets the webhooks')
    .option(
      '--customers <ids>',
      'the IDs of the customers whose changes are sent, separated by commas (default: every customer)',
    )
    .action(addOne)
  const list = listCommand({
    description: 'List the outgoing webhooks and the time up to which each has its changes.',
    list: store => store.listWebhooks(),
    none: 'There are no outgoing webhooks yet. Add one with: fatura webhook add URL',
    show: ({ secret: _, private_key, ...webhook }) => ({
      ...webhook,
      public_key: publicKeyOf({ private_key }),
    }),
    header: ['ID', 'STATE', 'DELIVERED UP TO', 'ATTEMPTS', 'CUSTOMERS', 'URL', 'FAILURE'],
    cells: ({ id, state, cursor, attempts, customers, url, error }) => [
      ...[id, state, new Date(cursor / 1000).toISOString(), String(attempts)],
      ...[describeScope(customers), url, error ?? ''],
    ],
  })
  const pause = new SettingsCommand('pause')
    .description(
      'Stop sending until "fatura webhook replay". Until then changes wait, for at most CHANGES_KEPT_DAYS days.',
    )
    .action(change('Paused', (store, id) => store.changeWebhook(id, { state: 'paused', cursor: null })))
  const replay = new SettingsCommand('replay')
    .description(
      'Continue where the webhook stopped, or send changes again from a given time. A paused or disabled webhook becomes active.',
    )
    .option(
      '--from <time>',
      'the time to start from, for example 2026-11-01T00:00:00Z, or now to skip waiting changes',
    )
    .action(replayOne)
  const remove = new SettingsCommand('remove')
    .description('Stop sending, and delete the webhook and its keys.')
    .action(change('Removed', (store, id) => store.removeWebhook(id)))
  const command = new SettingsCommand('webhook').description(
    'Add, list, pause, replay and remove outgoing webhooks, which tell your programs about each change.',
  )
  command.addCommand(list)
  for (const each of [pause, replay, remove])
    command.addCommand(
      each
        .argument('<id>', 'the ID of the webhook, wh_… ("fatura webhook list" shows it)')
        .settings(['DATABASE_URL']),
    )
  return command.addCommand(add.settings(['DATABASE_URL', 'OUTGOING_WEBHOOKS_PRIVATE']))
}

async function addOne(url: string, options: { customers?: string } & Options): Promise<void> {
  const { OUTGOING_WEBHOOKS_PRIVATE: allowPrivate } = readSettings(options, ['OUTGOING_WEBHOOKS_PRIVATE'])
  const problem = findUrlProblem(url, allowPrivate)
  if (problem !== null) throw new CliError(`The address ${problem}.`)
  const customers = readCustomers(options.customers)
  const id = `wh_${randomBytes(9).toString('base64url')}`
  const keys = createKeys()
  await saveCredential(options, customers, async store => {
    await store.addWebhook({
      ...{ id, url, customers, ...keys, cursor: await findEnd(store), state: 'active' },
      ...{ attempts: 0, next_at: null, error: null, created_at: Date.now() },
    })
  })
  process.stderr.write(
    `Outgoing webhook ${id} gets changes of ${describeScope(customers)} from now on. Save the secret at the receiver, because it is not shown again.\n`,
  )
  process.stdout.write(jsonLine({ id, secret: keys.secret, public_key: publicKeyOf(keys) }))
}

async function findEnd(store: WriteStore): Promise<number> {
  return (await store.readChanges(null, null, 1))?.next ?? 0
}

async function replayOne(id: string, options: { from?: string } & Options): Promise<void> {
  const { from } = options
  const at = from === undefined || from === 'now' ? null : readPast(from)
  await withStore(options, openWriteStore, async store => {
    const cursor = from === 'now' ? await findEnd(store) : at === null ? null : at * 1000
    if (cursor !== null && (await store.readChanges(null, cursor, 1)) === null)
      throw new CliError(`Changes since ${from} are no longer kept. Choose a later time, or now.`)
    if (!(await store.changeWebhook(id, { state: 'active', cursor }))) throw unknown(id)
  })
  process.stdout.write(`Outgoing webhook ${id} continues from ${from ?? 'where it stopped'}.\n`)
}

function readPast(text: string): number {
  const at = readMoment(isCalendarDay(text) ? `${text}T00:00Z` : text)
  if (at !== null && at >= 0 && at <= Date.now()) return at
  throw new CliError('--from must be a time in the past, for example 2026-11-01T00:00:00Z, or now.')
}

/** `work` returns false when no webhook has the id. */
function change(done: string, work: (store: WriteStore, id: string) => Promise<boolean>) {
  return async (id: string, options: Options): Promise<void> => {
    if (!(await withStore(options, openWriteStore, store => work(store, id)))) throw unknown(id)
    process.stdout.write(`${done} ${id}.\n`)
  }
}

function unknown(id: string): CliError {
  return new CliError(`There is no outgoing webhook ${id}. "fatura webhook list" shows them.`)
}
