/** From one store to another, of whatever engine: what is missing or differs is written, then both are compared. */
import { createHash } from 'node:crypto'
import type { InvoiceKey, InvoiceRecord } from '../invoice.ts'
import type { StoredRecord, WriteStore } from '../store/store.ts'
import { createStamps } from './stamps.ts'

const batchSize = 500

export interface CopyResult {
  /** Records that were missing in the target, or differed there. */
  written: number
  /** Records that were in the target already, as they are in the source. */
  alike: number
  /** Records of the target that the source does not have; they are left alone. */
  extra: number
}

export interface Digest {
  invoices: number
  /** SHA-256 over every record, in the order of their keys. */
  sha256: string
}

/**
 * Walks both stores side by side in the order of their keys, so a copy that was interrupted goes on where it was cut off
 * at the cost of reading, and one that is complete writes nothing. Freshness is copied last: it never runs ahead.
 */
export async function copyStore(
  from: WriteStore,
  to: WriteStore,
  onProgress: (invoices: number) => void,
): Promise<CopyResult> {
  const result: CopyResult = { written: 0, alike: 0, extra: 0 }
  let batch: InvoiceRecord[] = []
  // Later than anything in the target, whatever our clock says.
  const nextStamp = createStamps(await to.readLastObserved())
  const flush = async () => {
    if (batch.length > 0) await to.transaction(tx => tx.saveInvoices(batch, nextStamp()))
    result.written += batch.length
    batch = []
    onProgress(result.written + result.alike)
  }
  for await (const [wanted, present] of sideBySide(readAll(from), readAll(to))) {
    if (wanted === null) result.extra++
    else if (present !== null && isAlike(wanted, present)) result.alike++
    else batch.push({ invoice: JSON.parse(wanted.summary), lines: wanted.lines && JSON.parse(wanted.lines) })
    if (batch.length === batchSize) await flush()
  }
  await flush()
  for (const token of await from.listTokens()) await to.saveToken(token)
  const [streams, pins] = [await from.listStreams(), await from.listPins()]
  await to.transaction(async tx => {
    for (const stream of streams) await tx.saveStream(stream)
    for (const pin of pins) await tx.savePin(pin)
  })
  return result
}

/** What tells two stores apart, whatever their engines. */
export async function digestStore(
  store: WriteStore,
  onProgress: (invoices: number) => void,
): Promise<Digest> {
  const hash = createHash('sha256')
  let invoices = 0
  for await (const { customer_id, id, summary, lines } of readAll(store)) {
    hash.update(JSON.stringify([customer_id, id, summary, lines]))
    if (++invoices % batchSize === 0) onProgress(invoices)
  }
  return { invoices, sha256: hash.digest('hex') }
}

async function* readAll(store: WriteStore): AsyncGenerator<StoredRecord> {
  let last: InvoiceKey | null = null
  for (;;) {
    const records: StoredRecord[] = await store.readInvoices(last, batchSize)
    yield* records
    if (records.length < batchSize) return
    last = records.at(-1) ?? null
  }
}

/** Pairs the records of equal keys; null stands where one side has none. */
async function* sideBySide(
  left: AsyncGenerator<StoredRecord>,
  right: AsyncGenerator<StoredRecord>,
): AsyncGenerator<[StoredRecord | null, StoredRecord | null]> {
  let [a, b] = [await next(left), await next(right)]
  while (a !== null || b !== null) {
    const order = a === null ? 1 : b === null ? -1 : compareKeys(a, b)
    yield [order <= 0 ? a : null, order >= 0 ? b : null]
    if (order <= 0) a = await next(left)
    if (order >= 0) b = await next(right)
  }
}

async function next(records: AsyncGenerator<StoredRecord>): Promise<StoredRecord | null> {
  const { value, done } = await records.next()
  return done ? null : value
}

/** IDs are plain ASCII, so this is the order of bytes that the stores keep. */
function compareKeys(a: InvoiceKey, b: InvoiceKey): number {
  if (a.customer_id !== b.customer_id) return a.customer_id < b.customer_id ? -1 : 1
  return a.id === b.id ? 0 : a.id < b.id ? -1 : 1
}

function isAlike(a: StoredRecord, b: StoredRecord): boolean {
  return a.summary === b.summary && a.lines === b.lines
}
