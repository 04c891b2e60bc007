import { migrateStore, openWriteStore, useStore } from '../../store/engines.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, printResult, printWaiting } from '../terminal/progress.ts'

export const migrateCommand = () =>
  new SettingsCommand('migrate')
    .description('Create the store, or bring its schema up to date. Safe to run again.')
    .option('--json', 'one JSON object: the version before and after')
    .option(
      '--restored',
      'say that the store comes from a backup: old cursors and ETags are refused from now on',
    )
    .settings(['DATABASE_URL'])
    .action(migrate)

async function migrate(options: { json?: true; restored?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const progress = createProgress('customers')
  const migrating = migrateStore(url, progress.update, { onWait: printWaiting })
  const { from, to } = await migrating.finally(progress.end)
  const restored = options.restored === true
  if (restored) await useStore(openWriteStore(url, { onWait: printWaiting }), store => store.renewLife())
  if (options.json === true) return printResult(jsonLine({ from, to, restored }))
  printResult(
    from === to
      ? `The schema is up to date: version ${to}.\n`
      : `Migrated the schema from version ${from} to ${to}.\n`,
  )
  if (restored)
    printResult(
      'The store begins a new life: cursors and ETags that were given before the restore are refused.\n',
    )
}
