import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import { readDatabaseUrl } from '../settings/config.ts'
import { addSettings, readFlags } from '../settings/options.ts'
import { printResult } from '../terminal/moving-line.ts'
import { createProgress, sayWaiting } from '../terminal/progress.ts'

export function migrateCommand(): Command {
  return addSettings(
    new Command('migrate').description(
      'Create the store, or bring its schema up to date. Safe to run again.',
    ),
    'DATABASE_URL',
  ).action(migrate)
}

async function migrate(options: Record<string, unknown>): Promise<void> {
  const progress = createProgress('customers')
  const { from, to } = await migrateStore(readDatabaseUrl(readFlags(options)), progress.update, {
    onWait: path => sayWaiting(path, progress),
  }).finally(progress.end)
  printResult(
    from === to
      ? `The schema is up to date: version ${to}.\n`
      : `Migrated the schema from version ${from} to ${to}.\n`,
  )
}
