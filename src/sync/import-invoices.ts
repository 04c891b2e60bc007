/** NDJSON into the store: one invoice a line, all in one transaction. */
import type { InvoiceRecord } from '../invoice.ts'
import type { WriteStore } from '../store/store.ts'
import { type Problem, readRecord } from './check-record.ts'
import { readLines, type TextLine } from './read-lines.ts'
import { createStamps } from './stamps.ts'

/** Large enough to be fast, small enough to be nothing in memory. */
const batchSize = 500

export interface ImportOptions {
  /** Import the good lines of a file that has bad ones; otherwise such a file changes nothing. */
  skipInvalid: boolean
  onRefusal(line: number, problems: readonly Problem[]): void
  onProgress(step: 'checked' | 'saved', invoices: number): void
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

/**
 * Reads the input twice: first every line is checked, then all are saved in one transaction. The store is locked for
 * the second alone, so that neither a bad file nor a slow sender keeps other writers out. Importing the same file again
 * changes nothing; of two lines with one customer and id the later wins.
 */
export async function importInvoices(
  openInput: () => AsyncIterable<Uint8Array>,
  store: WriteStore,
  options: ImportOptions,
): Promise<ImportResult> {
  const checked = await checkAll(openInput(), options)
  if (checked.refused > 0 && !options.skipInvalid) return { ...checked, changed: 0, committed: false }
  const changed = await saveAll(openInput, store, options)
  return { ...checked, changed, committed: true }
}

async function checkAll(bytes: AsyncIterable<Uint8Array>, { onRefusal, onProgress }: ImportOptions) {
  let valid = 0
  let refused = 0
  for await (const line of readLines(bytes)) {
    const read = readLine(line)
    if ('record' in read) {
      valid++
      if (valid % batchSize === 0) onProgress('checked', valid)
    } else {
      refused++
      onRefusal(line.number, read.problems)
    }
  }
  return { valid, refused }
}

async function saveAll(
  openInput: () => AsyncIterable<Uint8Array>,
  store: WriteStore,
  { skipInvalid, onProgress }: ImportOptions,
): Promise<number> {
  // Later than anything stored, whatever our clock says: what is imported is meant to be the newest.
  const observedAt = createStamps(await store.readLastObserved())()
  return store.transaction(async tx => {
    let saved = 0
    let changed = 0
    let batch: InvoiceRecord[] = []
    const flush = async () => {
      changed += await tx.saveInvoices(batch, observedAt)
      saved += batch.length
      batch = []
      onProgress('saved', saved)
    }
    for await (const line of readLines(openInput())) {
      const read = readLine(line)
      if ('record' in read) batch.push(read.record)
      else if (!skipInvalid) throw new InputChanged()
      if (batch.length === batchSize) await flush()
    }
    await flush()
    await tx.saveSuccess('import', Date.now())
    return changed
  })
}

/** The input was valid when it was checked and is not any more; nothing was saved. */
export class InputChanged extends Error {}

function readLine({ text, reason }: TextLine): ReturnType<typeof readRecord> {
  if (text === null) return { problems: [{ field: null, reason: reason ?? 'cannot be read' }] }
  try {
    return readRecord(JSON.parse(text))
  } catch (error) {
    return { problems: [{ field: null, reason: `is not valid JSON: ${(error as Error).message}` }] }
  }
}
