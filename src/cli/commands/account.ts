import { knownSources } from '../../sources/known-sources.ts'
import { SourceError } from '../../sources/source.ts'
import { openOperatorStore, openWriteStore, useStore } from '../../store/engines.ts'
import { type Comparison, compareAccounts, formatAccount, rebindAccounts } from '../../sync/accounts.ts'
import { fenceStore, nameProcess, waitForLease } from '../../sync/lease.ts'
import { WrittenPlace } from '../../sync/written-place.ts'
import { invoiceXpressOf, settingGroups, stripeOf } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createLog } from '../terminal/log.ts'
import { printWaiting } from '../terminal/progress.ts'
import { formatTable } from '../terminal/table.ts'

const usedByChange = [
  'DATABASE_URL',
  'LOG_LEVEL',
  ...settingGroups.stripe,
  ...settingGroups.invoiceXpress,
] as const

export function accountCommand() {
  const show = new SettingsCommand('show')
    .description('Show the Stripe and InvoiceXpress accounts whose records are in the store.')
    .option('--json', 'print one JSON object per line')
    .settings(['DATABASE_URL'])
    .action(showAccounts)
  const change = new SettingsCommand('change')
    .description(
      'Synchronize the accounts of the current settings, and no longer the accounts that the store was filled from.',
    )
    .option('--confirm', 'make the change (without this flag, the command only shows what would change)')
    .settings(usedByChange)
    .action(changeAccounts)
  return new SettingsCommand('account')
    .description('Show or change the accounts whose records the store holds.')
    .addCommand(show)
    .addCommand(change)
}

async function showAccounts(options: { json?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const accounts = await useStore(openOperatorStore(url), store => store.listBoundAccounts())
  if (options.json === true) process.stdout.write(accounts.map(jsonLine).join(''))
  else if (accounts.length === 0)
    process.stdout.write('The store knows no account yet. The first "fatura sync" saves the account.\n')
  else {
    const rows = accounts.map(bound => [bound.system, bound.account, new Date(bound.bound_at).toISOString()])
    process.stdout.write(formatTable([['SYSTEM', 'ACCOUNT', 'SINCE'], ...rows]))
  }
}

async function changeAccounts(options: { confirm?: true } & Options): Promise<void> {
  const settings = readSettings(options, usedByChange)
  const [stripe, invoiceXpress] = [stripeOf(settings), invoiceXpressOf(settings)]
  if (stripe === null) throw new CliError('Set STRIPE_API_KEY to a key of the account to synchronize.')
  const { accountsOf } = await import('../start/open-connector.ts')
  await useStore(openWriteStore(settings.DATABASE_URL, { onWait: printWaiting }), async store => {
    const compared = await compareAccounts(store, accountsOf({ stripe, invoiceXpress })).catch(error => {
      throw error instanceof SourceError ? new CliError(`${error.message}. Nothing was changed.`) : error
    })
    const others = compared.filter(({ verdict }) => verdict === 'other')
    if (others.length === 0) {
      process.stdout.write('Nothing to change: the settings name the same accounts as the store.\n')
      return
    }
    for (const other of others) process.stdout.write(describeChange(other))
    if (options.confirm !== true)
      throw new CliError('Nothing was changed. To make this change, run the command again with --confirm.')
    const lease = await waitForLease(store, {
      holder: nameProcess(),
      wait: false,
      log: createLog(settings.LOG_LEVEL),
      signal: new AbortController().signal,
      place: new WrittenPlace(),
    })
    try {
      await rebindAccounts(fenceStore(store, lease), others)
    } finally {
      await lease.release()
    }
    process.stdout.write('The accounts were changed. The next "fatura sync" reads everything again.\n')
  })
}

function describeChange({ source, bound, found }: Comparison): string {
  const before = bound === null ? 'invoices that the key does not find' : formatAccount(source, bound)
  const common = `From ${before}\nto ${formatAccount(source, found)}:\n`
  if (source.system !== knownSources.billing.system)
    return `${common}  - Everything is read again from the new account.
  - An invoice whose document is not in the new account becomes failed or not_synced. The deletion guard may hold this back.
  - The old account's documents stay in the store.
`
  return `${common}  - All invoices of the new account are read. Until then, answers have no header Fatura-Synced-At.
  - Invoices of the old account stay in the store and are served. They do not change any more.
  - Drafts of the old account are deleted. The deletion guard may hold this back.
  - To have a store without the old account's invoices, set DATABASE_URL to a new store instead.
`
}
