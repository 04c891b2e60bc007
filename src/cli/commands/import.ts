import { closeSync, createReadStream, createWriteStream, fstatSync, openSync, read } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { openWriteStore, prepareStore, useStore } from '../../store/engines.ts'
import type { WriteStore } from '../../store/store.ts'
import type { Problem } from '../../sync/import/check-record.ts'
import { InputChanged, importInvoices, JsonArray, NotNdjson } from '../../sync/import/import-invoices.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { createProgress, printResult, printWaiting } from '../terminal/progress.ts'
import { printable } from '../terminal/table.ts'
import { createTemporaryFolder } from './temporary-folder.ts'

export const importCommand = () =>
  new SettingsCommand('import')
    .description(
      'Load invoices from an NDJSON file with one invoice per line. Importing the same file again changes nothing.',
    )
    .argument('<file>', 'the file, or - for standard input')
    .option(
      '--skip-invalid',
      'import the valid lines even if other lines are invalid (without this flag, one invalid line stops the import)',
    )
    .option(
      '--json',
      'print one JSON object with the numbers of imported, changed, unchanged and invalid lines',
    )
    .settings(['DATABASE_URL'])
    .notes(`Each line is a JSON object with the fields of an invoice in the API's list. It may also have "lines", the invoice's line items.
Fields that may be null can be left out. The shortest valid line is:

  {"id":"in_1","customer_id":"cus_1","display_name":"Ana Lima",
   "issued_at":"2026-03-02T09:30:00.000Z","subtotal_cents":1000,
   "discount_cents":0,"tax_cents":230,"total_cents":1230,"currency":"eur",
   "status":"paid","ix_sync_state":"not_synced"}

In the file it must be on one line.`)
    .action(runImport)

/** More messages would scroll the first ones off the screen. */
const shownRefusals = 20

async function runImport(file: string, options: Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const input = await openInput(file)
  const name = file === '-' ? 'standard input' : file
  try {
    await prepareStore(url, { onWait: printWaiting })
    const opening = openWriteStore(url, { onWait: printWaiting })
    await useStore(opening, store => importFrom(input.read, store, options))
  } catch (error) {
    if (error instanceof InputChanged)
      throw new CliError(
        `Nothing was imported: ${file} changed while it was read. Import it again when it no longer changes.`,
      )
    if (error instanceof JsonArray)
      throw new CliError(
        `Nothing was imported: ${name} is a JSON array, not NDJSON (one JSON object per line). Convert it with jq: jq -c '.[]' ${file === '-' ? '' : `${file} `}| fatura import -`,
      )
    if (error instanceof NotNdjson)
      throw new CliError(
        `Nothing was imported: ${name} is not NDJSON. No line of it is a JSON object (${describe(error.line, error.problems)}). "fatura import --help" shows a valid line.`,
      )
    const { syscall, message } = error as NodeJS.ErrnoException
    if (syscall !== undefined)
      throw new CliError(`Nothing was imported: reading ${file} failed (${message}).`)
    throw error
  } finally {
    input.close()
  }
}

async function importFrom(read: ReadInput, store: WriteStore, options: Options): Promise<void> {
  const progress = createProgress('invoices')
  let refusals = 0
  try {
    const { valid, refused, changed, committed } = await importInvoices(read, store, {
      skipInvalid: options.skipInvalid === true,
      onRefusal: (line, problems) => {
        if (++refusals <= shownRefusals) progress.print(describe(line, problems))
      },
      onProgress: progress.update,
    })
    if (refusals > shownRefusals) progress.print(`… and ${refusals - shownRefusals} more invalid lines.`)
    if (!committed)
      throw new CliError(
        `Nothing was imported: ${refused} of ${refused + valid} lines are invalid. Correct them, or import the rest with --skip-invalid.`,
      )
    if (options.json === true)
      return printResult(jsonLine({ imported: valid, changed, unchanged: valid - changed, invalid: refused }))
    const skipped = refused === 0 ? '' : `, ${refused} invalid ${refused === 1 ? 'line' : 'lines'} skipped`
    printResult(
      `Imported ${valid} ${valid === 1 ? 'invoice' : 'invoices'}: ${changed} new or changed, ${valid - changed} as before${skipped} (${progress.pace(valid)}).\n`,
    )
  } finally {
    progress.end()
  }
}

const chunkSize = 256 * 1024
const readAt = promisify(read)

/** Returns a reader of the input. Each call starts at the first byte. */
type ReadInput = () => AsyncIterable<Uint8Array>

async function openInput(file: string): Promise<{ read: ReadInput; close(): void }> {
  const found = file === '-' ? fstatSync(0) : await stat(file).catch(() => null)
  if (found === null) throw new CliError(`There is no file ${file}.`)
  if (found.isDirectory()) throw new CliError(`${file} is a folder. Name a file, or - for standard input.`)
  if (file === '-' || !found.isFile()) return keepInput(file === '-' ? process.stdin : createReadStream(file))
  return { read: () => createReadStream(file, { highWaterMark: chunkSize }), close: () => {} }
}

/**
 * Copies input that cannot be read twice into a file that is already deleted. The system frees the file when the process ends, however it
 * ends.
 */
async function keepInput(source: NodeJS.ReadableStream) {
  const folder = await createTemporaryFolder('fatura-import-')
  const fd = openSync(join(folder, 'input.ndjson'), 'w+')
  await rm(folder, { recursive: true })
  await pipeline(source, createWriteStream('', { fd, autoClose: false }))
  return { read: () => readFrom(fd), close: () => closeSync(fd) }
}

/** Reads the file from its first byte without a stream. A stream would close the file when its reader stops early. */
async function* readFrom(fd: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; ; ) {
    const { bytesRead, buffer } = await readAt(fd, Buffer.allocUnsafe(chunkSize), 0, chunkSize, offset)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    offset += bytesRead
  }
}

function describe(line: number, problems: readonly Problem[]): string {
  return problems
    .map(({ field, reason }) => printable(`line ${line}: ${field === null ? 'the line' : field} ${reason}`))
    .join('\n')
}
