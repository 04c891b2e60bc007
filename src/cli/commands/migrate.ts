import { migrateStore } from '../../store/engines.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, printResult, printWaiting } from '../terminal/progress.ts'

export const migrateCommand = () =>
  new SettingsCommand('migrate')
    .description('Create the store, or bring its schema up to date. Safe to run again.')
    .option('--json', 'one JSON object: the version before and after')
    .settings(['DATABASE_URL'])
    .action(migrate)

async function migrate(options: { json?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const progress = createProgress('customers')
  const migrating = migrateStore(url, progress.update, { onWait: printWaiting })
  const { from, to } = await migrating.finally(progress.end)
  if (options.json === true) return printResult(jsonLine({ from, to }))
  printResult(
    from === to
      ? `The schema is up to date: version ${to}.\n`
      : `Migrated the schema from version ${from} to ${to}.\n`,
  )
}
