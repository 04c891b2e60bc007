import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { migrateStore, openWriteStore } from '../store/open-store.ts'
import type { Problem } from '../sync/check-record.ts'
import { importInvoices } from '../sync/import-invoices.ts'
import { CliError } from './cli-error.ts'
import { readDatabaseUrl } from './config.ts'
import { addSettings, readFlags } from './options.ts'
import { createProgress } from './progress.ts'

export function importCommand(): Command {
  return addSettings(
    new Command('import')
      .description(
        'Load invoices from NDJSON: one invoice a line. Importing the same file again changes nothing.',
      )
      .argument('<file>', 'the file, or - for standard input')
      .option(
        '--skip-invalid',
        'import the valid lines of a file that has invalid ones; without it, all or nothing',
      ),
    'DATABASE_URL',
  )
    .addHelpText(
      'after',
      `
Each line is a JSON object with the fields of an invoice as the API lists it, and "lines" when they are known.
Fields that may be null may be left out. The least a line can hold:

  {"id":"in_1","customer_id":"cus_1","display_name":"Ana Lima","issued_at":"2026-03-02T09:30:00.000Z",
   "subtotal_cents":1000,"discount_cents":0,"tax_cents":230,"total_cents":1230,"currency":"eur",
   "status":"paid","ix_sync_state":"not_synced"}                                  (on one line in the file)`,
    )
    .action(runImport)
}

/** More would scroll away the first, and the first are the ones to read. */
const shownRefusals = 20

async function runImport(
  file: string,
  options: { skipInvalid?: true } & Record<string, unknown>,
): Promise<void> {
  const url = readDatabaseUrl(readFlags(options))
  const input = await openInput(file)
  await migrateStore(url)
  const store = await openWriteStore(url)
  const progress = createProgress('invoices')
  let refusals = 0
  try {
    const result = await importInvoices(input, store, {
      skipInvalid: options.skipInvalid === true,
      onRefusal: (line, problems) => {
        if (++refusals <= shownRefusals) progress.say(describe(line, problems))
      },
      onProgress: progress.update,
    })
    if (refusals > shownRefusals) progress.say(`… and ${refusals - shownRefusals} more invalid lines.`)
    if (!result.committed) {
      const of = `${result.refused} of ${result.refused + result.valid} lines`
      throw new CliError(
        `Nothing was imported: ${of} are invalid. Mend them, or import the rest with --skip-invalid.`,
      )
    }
    const skipped = result.refused === 0 ? '' : `, ${result.refused} invalid lines skipped`
    process.stdout.write(
      `Imported ${result.valid} invoices: ${result.changed} new or changed, ${result.valid - result.changed} as before${skipped} (${progress.pace(result.valid)}).\n`,
    )
  } catch (error) {
    if (isReadFailure(error))
      throw new CliError(`Nothing was imported: reading ${file} failed (${error.message}).`)
    throw error
  } finally {
    progress.end()
    await store.close()
  }
}

async function openInput(file: string): Promise<AsyncIterable<Uint8Array>> {
  if (file === '-') return process.stdin
  const found = await stat(file).catch(() => null)
  if (found === null) throw new CliError(`There is no file ${file}.`)
  if (found.isDirectory()) throw new CliError(`${file} is a folder; give a file, or - for standard input.`)
  return createReadStream(file, { highWaterMark: 256 * 1024 })
}

function isReadFailure(error: unknown): error is NodeJS.ErrnoException {
  return (error as NodeJS.ErrnoException).syscall !== undefined
}

function describe(line: number, problems: readonly Problem[]): string {
  return problems
    .map(({ field, reason }) => `line ${line}: ${field === null ? 'the line' : field} ${reason}`)
    .join('\n')
}
