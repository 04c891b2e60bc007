/** Imports NDJSON, one invoice on each line, in one transaction. */
import type { InvoiceRecord } from '../../domain/invoice.ts'
import { importStream } from '../../sources/stream-names.ts'
import { createStamps } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import { type Problem, readRecord } from './check-record.ts'
import { readLines, type TextLine } from './read-lines.ts'

/**
 * Maximum number of invoices, and of characters, in a batch. Large batches are fast on
 * Citus, where a batch is one command to each shard. The limits keep the memory small.
 */
const [batchSize, batchLength] = [2_000, 4_000_000]

export interface ImportOptions {
  /** True imports the valid lines of a file that has invalid lines. False imports nothing from such a file. */
  skipInvalid: boolean
  onRefusal(line: number, problems: readonly Problem[]): void
  onProgress(step: 'checked' | 'saved', invoices: number): void
}

/**
 * Reads the input twice: first checks every line, then saves all lines in one transaction. So an invalid
 * file or a slow sender does not block other writers. Of two lines with one key, the later line wins.
 */
export async function importInvoices(
  openInput: () => AsyncIterable<Uint8Array>,
  store: WriteStore,
  options: ImportOptions,
) {
  const checked = await checkAll(openInput(), options)
  if (checked.refused > 0 && !options.skipInvalid) return { ...checked, changed: 0, committed: false }
  const changed = await saveAll(openInput, store, options)
  return { ...checked, changed, committed: true }
}

/** Reading stops when none of this many first lines is a JSON object or list. */
const linesBeforeJson = 1_000

async function checkAll(bytes: AsyncIterable<Uint8Array>, { onRefusal, onProgress }: ImportOptions) {
  let valid = 0
  let refused = 0
  // Problems are held back until one line is JSON. A file of another kind, such as a PDF, would otherwise cause a report for each of its
  // lines.
  let held: [line: number, problems: readonly Problem[]][] | null = []
  for await (const line of readLines(bytes)) {
    if (valid + refused === 0 && line.text?.startsWith('[')) throw new JsonArray()
    const read = readLine(line)
    if (held !== null && read.isJson) {
      for (const [number, problems] of held) onRefusal(number, problems)
      held = null
    }
    if ('record' in read) {
      valid++
      if (valid % batchSize === 0) onProgress('checked', valid)
    } else {
      refused++
      if (held === null) onRefusal(line.number, read.problems)
      else if (held.push([line.number, read.problems]) === linesBeforeJson) break
    }
  }
  const [first] = held ?? []
  if (first !== undefined) throw new NotNdjson(...first)
  return { valid, refused }
}

/** Thrown when the input is one JSON array. Nothing was saved. */
export class JsonArray extends Error {}

/** Thrown when no line is JSON. Holds the problems of the first line. Nothing was saved. */
export class NotNdjson extends Error {
  readonly line: number
  readonly problems: readonly Problem[]

  constructor(line: number, problems: readonly Problem[]) {
    super(`Line ${line} is not JSON, nor is any other.`)
    this.line = line
    this.problems = problems
  }
}

async function saveAll(
  openInput: () => AsyncIterable<Uint8Array>,
  store: WriteStore,
  { skipInvalid, onProgress }: ImportOptions,
): Promise<number> {
  // This stamp is later than all stored stamps, whatever the clock says. So imported records count as the newest.
  const observedAt = createStamps(await store.readLastObserved())()
  return store.transaction(async tx => {
    let saved = 0
    let changed = 0
    let batch: InvoiceRecord[] = []
    let length = 0
    const flush = async () => {
      changed += await tx.saveInvoices(batch, observedAt)
      saved += batch.length
      batch = []
      length = 0
      onProgress('saved', saved)
    }
    for await (const line of readLines(openInput())) {
      const read = readLine(line)
      if ('record' in read) batch.push(read.record)
      else if (!skipInvalid) throw new InputChanged()
      length += line.text?.length ?? 0
      if (batch.length === batchSize || length >= batchLength) await flush()
    }
    await flush()
    await tx.saveSuccess(importStream, Date.now())
    return changed
  })
}

/** Thrown when the input was valid in the check and is invalid now. Nothing was saved. */
export class InputChanged extends Error {}

/**
 * Reads one line. `isJson` is true only for an object or a list. A number
 * alone is valid JSON too, but does not show that the file is JSON.
 */
function readLine({ text, reason }: TextLine): ReturnType<typeof readRecord> & { isJson: boolean } {
  if (text === null) return { problems: [{ field: null, reason: reason ?? 'cannot be read' }], isJson: false }
  try {
    const value: unknown = JSON.parse(text)
    return { ...readRecord(value), isJson: typeof value === 'object' && value !== null }
  } catch (error) {
    const reason = `is not valid JSON: ${(error as Error).message}`
    return { problems: [{ field: null, reason }], isJson: false }
  }
}
