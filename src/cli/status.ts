import { Command } from 'commander'
import { openWriteStore } from '../store/open-store.ts'
import type { Stream } from '../store/store.ts'
import { tellCursor } from '../sync/ranges.ts'
import { readDatabaseUrl } from './config.ts'
import { addSettings, readFlags } from './options.ts'
import { formatTable } from './table.ts'

export function statusCommand(): Command {
  return addSettings(
    new Command('status')
      .description(
        'Show how far each stream of records is: its last success, how long ago, and what failed since.',
      )
      .option('--json', 'one JSON object a line'),
    'DATABASE_URL',
  ).action(showStatus)
}

async function showStatus(options: { json?: true } & Record<string, unknown>): Promise<void> {
  const store = await openWriteStore(readDatabaseUrl(readFlags(options)))
  try {
    const streams = await store.listStreams()
    if (options.json === true)
      for (const stream of streams) process.stdout.write(`${JSON.stringify(stream)}\n`)
    else if (streams.length === 0)
      process.stdout.write(
        'Nothing was brought in yet. Start with: fatura sync --once, or fatura import FILE\n',
      )
    else
      process.stdout.write(
        formatTable([['STREAM', 'LAST SUCCESS', 'AGO', 'CURSOR', 'FAILURE'], ...streams.map(describe)]),
      )
  } finally {
    await store.close()
  }
}

function describe({ name, succeeded_at, cursor, failed_at, error }: Stream): string[] {
  const failure = failed_at === null ? '' : `${new Date(failed_at).toISOString()} ${error}`
  return [
    name,
    succeeded_at === null ? 'never' : new Date(succeeded_at).toISOString(),
    succeeded_at === null ? '' : `${Math.round((Date.now() - succeeded_at) / 1000)} s`,
    cursor === null ? '' : tellCursor(cursor),
    failure,
  ]
}
