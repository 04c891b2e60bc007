import { migrateStore, openWriteStore, useStore } from '../../store/engines.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, printResult, printWaiting } from '../terminal/progress.ts'

export const migrateCommand = () =>
  new SettingsCommand('migrate')
    .description('Create the store, or bring its schema up to date. You can run it again at any time.')
    .option('--json', 'print one JSON object with the schema version before and after')
    .option(
      '--restored',
      'use this once after you restore the store from a backup: cursors and ETags from before the restore are then refused',
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
      'The store is marked as restored. Cursors and ETags from before the restore are now refused.\n',
    )
}
