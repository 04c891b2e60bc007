/** Reads the SAF-T file of a reconciliation, from a path or from InvoiceXpress for one month. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { lastDayOf } from '../../domain/calendar.ts'
import type { LinkRules } from '../../domain/link/link.ts'
import { FileError } from '../../operations/reconcile/decode-xml.ts'
import type { Limits } from '../../operations/reconcile/difference-kinds.ts'
import { readSaft } from '../../operations/reconcile/read-saft.ts'
import type { Difference } from '../../operations/reconcile/reconcile.ts'
import { compareWithSaft } from '../../operations/reconcile/reconcile-saft.ts'
import type { InvoiceXpressOptions } from '../../sources/invoicexpress/client.ts'
import { openSaftExport } from '../../sources/invoicexpress/saft-export.ts'
import { knownSources } from '../../sources/known-sources.ts'
import { SourceError } from '../../sources/source.ts'
import type { OperatorStore } from '../../store/store.ts'
import { CliError } from '../terminal/cli-error.ts'
import { movingLine, type Progress } from '../terminal/progress.ts'
import { printable } from '../terminal/table.ts'
import { type DayFlags, readDays, type Scope } from './reconcile-scope.ts'

export interface ReconcileTask {
  store: OperatorStore
  scope: Scope
  rules: LinkRules
  limits: Limits
  progress: Progress
  tally: { checked: number }
}

/** Returns the differences with the SAF-T file. `connect` returns the access to InvoiceXpress, or null when no key is set. */
export async function* reconcileSaft(
  { saft, company, ...flags }: DayFlags & { saft: string; company?: string },
  connect: () => InvoiceXpressOptions | null,
  { store, scope, rules, limits, progress, tally }: ReconcileTask,
): AsyncGenerator<Difference> {
  const isMonth = /^\d{4}-\d{2}$/.test(saft)
  const month = isMonth ? saft : flags.month
  readDays({ month })
  try {
    const bytes = isMonth ? await fetchFile(saft, connect()) : await openFile(saft)
    yield* compareWithSaft(readSaft(bytes), {
      ...{ store, rules, limits, startOf: scope.zone.startOf },
      checkHeader({ from, to, taxId, company: name }) {
        if (company !== undefined && taxId !== company)
          throw new FileError(`belongs to another company: ${name} (${taxId}), not ${company}`)
        if (month !== undefined && (from !== `${month}-01` || to !== lastDayOf(month)))
          throw new FileError(`covers other days: ${from} to ${to}, not ${month}`)
      },
      onProgress: progress.update,
      onRead(documents) {
        tally.checked = documents
      },
    })
  } catch (error) {
    const name = isMonth ? `The SAF-T file of ${knownSources.documents.name}` : saft
    if (error instanceof FileError)
      throw new CliError(printable(`${name} ${error.message}.`), { cause: error })
    if (error instanceof SourceError)
      throw new CliError(`${error.message.replace(/\.$/, '')}.`, { cause: error })
    throw error
  }
}

async function openFile(path: string): Promise<AsyncIterable<Uint8Array>> {
  const found = await stat(path).catch(() => null)
  if (found === null)
    throw new CliError(`There is no file ${printable(path)}. To fetch a month, write it as YYYY-MM.`)
  if (found.isDirectory()) throw new CliError(`${printable(path)} is a folder. Name a SAF-T file.`)
  return createReadStream(path, { highWaterMark: 256 * 1024 })
}

async function fetchFile(month: string, options: InvoiceXpressOptions | null) {
  if (options === null)
    throw new CliError(
      'To fetch the SAF-T file of a month, set INVOICEXPRESS_API_KEY. Or name the file itself.',
    )
  const source = knownSources.documents.name
  try {
    return await openSaftExport(options, month, seconds => {
      const text = `${source} is making the SAF-T file of ${month} …`
      if (movingLine.canMove) movingLine.draw(`${text} ${seconds} s`)
      else if (seconds === 0) movingLine.print(`${text}\n`)
    })
  } finally {
    movingLine.clear()
  }
}
