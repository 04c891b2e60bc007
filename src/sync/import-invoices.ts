/** NDJSON into the store: one invoice a line, all in one transaction. */
import type { InvoiceRecord } from '../invoice.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import { type Problem, readRecord } from './check-record.ts'
import { readLines, type TextLine } from './read-lines.ts'

/** Large enough to be fast, small enough to be nothing in memory. */
const batchSize = 500

export interface ImportOptions {
  /** Import the good lines of a file that has bad ones; otherwise such a file changes nothing. */
  skipInvalid: boolean
  onRefusal(line: number, problems: readonly Problem[]): void
  onProgress(invoices: number): void
}

export interface ImportResult {
  /** Lines that hold a valid invoice. */
  valid: number
  /** Lines refused. */
  refused: number
  /** Invoices that are new, or differ from what was stored. */
  changed: number
  /** False when a bad line kept the whole file out. */
  committed: boolean
}

/** Importing the same file again changes nothing; of two lines with one id the later wins. */
export async function importInvoices(
  bytes: AsyncIterable<Uint8Array>,
  store: WriteStore,
  options: ImportOptions,
): Promise<ImportResult> {
  const result: ImportResult = { valid: 0, refused: 0, changed: 0, committed: false }
  try {
    await store.transaction(async tx => {
      await importAll(bytes, tx, options, result)
      if (result.refused > 0 && !options.skipInvalid) throw new RolledBack()
      await tx.saveSuccess('import', Date.now())
    })
    return { ...result, committed: true }
  } catch (error) {
    if (error instanceof RolledBack) return { ...result, changed: 0 }
    throw error
  }
}

class RolledBack extends Error {}

async function importAll(
  bytes: AsyncIterable<Uint8Array>,
  tx: WriteTransaction,
  { skipInvalid, onRefusal, onProgress }: ImportOptions,
  result: ImportResult,
): Promise<void> {
  let batch: InvoiceRecord[] = []
  const flush = async () => {
    // After a refusal the rest is only checked, so that all that is wrong is told in one run.
    if (skipInvalid || result.refused === 0) result.changed += await tx.saveInvoices(batch)
    batch = []
    onProgress(result.valid)
  }
  for await (const line of readLines(bytes)) {
    const read = readLine(line)
    if ('problems' in read) {
      result.refused++
      onRefusal(line.number, read.problems)
      continue
    }
    result.valid++
    if (batch.push(read.record) === batchSize) await flush()
  }
  await flush()
}

function readLine({ text, reason }: TextLine): ReturnType<typeof readRecord> {
  if (text === null) return { problems: [{ field: null, reason: reason ?? 'cannot be read' }] }
  try {
    return readRecord(JSON.parse(text))
  } catch (error) {
    return { problems: [{ field: null, reason: `is not valid JSON: ${(error as Error).message}` }] }
  }
}
