/** Imports NDJSON: one invoice a line, all in one transaction. */
import type { InvoiceRecord } from '../../domain/invoice.ts'
import { importStream } from '../../sources/stream-names.ts'
import { createStamps } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import { type Problem, readRecord } from './check-record.ts'
import { readLines, type TextLine } from './read-lines.ts'

/** Large enough to be fast, also on Citus, where a batch is a command to each shard; small enough for little memory. */
const [batchSize, batchLength] = [2_000, 4_000_000]

export interface ImportOptions {
  /** Import the good lines of a file that has bad ones; otherwise such a file changes nothing. */
  skipInvalid: boolean
  onRefusal(line: number, problems: readonly Problem[]): void
  onProgress(step: 'checked' | 'saved', invoices: number): void
}

/** Reads the input twice: checks every line, then saves all in one transaction, so that no bad file or slow sender keeps other writers out. Of two lines with one key the later wins. */
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

/** When none of the first lines is a JSON object or list, the rest is not read. */
const linesBeforeJson = 1_000

async function checkAll(bytes: AsyncIterable<Uint8Array>, { onRefusal, onProgress }: ImportOptions) {
  let valid = 0
  let refused = 0
  // The lines of another kind of file, such as a PDF, are not reported one by one.
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

/** The input is one JSON array. Nothing was saved. */
export class JsonArray extends Error {}

/** No line is JSON; holds the problems of the first one. Nothing was saved. */
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
  // Later than anything stored, whatever the clock: imported records count as the newest.
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

/** The input was valid when it was checked and is not any more; nothing was saved. */
export class InputChanged extends Error {}

/** A number or a text alone is JSON as well, but no sign that the rest is. */
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
