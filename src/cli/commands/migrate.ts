import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import { addSettings, type Options, readSettings } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { printResult } from '../terminal/moving-line.ts'
import { createProgress, printWaiting } from '../terminal/progress.ts'

const used = ['DATABASE_URL'] as const

export function migrateCommand(): Command {
  return addSettings(
    new Command('migrate')
      .description('Create the store, or bring its schema up to date. Safe to run again.')
      .option('--json', 'one JSON object: the version before and after'),
    used,
  ).action(migrate)
}

async function migrate(options: { json?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, used)
  const progress = createProgress('customers')
  const { from, to } = await migrateStore(url, progress.update, {
    onWait: path => printWaiting(path, progress),
  }).finally(progress.end)
  if (options.json === true) return printResult(jsonLine({ from, to }))
  printResult(
    from === to
      ? `The schema is up to date: version ${to}.\n`
      : `Migrated the schema from version ${from} to ${to}.\n`,
  )
}
