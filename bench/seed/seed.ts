/** Fills a store with the corpus, through the interface that every writer uses. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createProgress } from '../../src/cli/terminal/progress.ts'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import { fillDatabase, type PostgresServer } from '../servers/postgres-server.ts'
import { countInvoices, makeRecords, type Shape } from './corpus.ts'
import { type DataName, nameStore } from './data-folder.ts'

const batchSize = 2_000
/** So many batches are committed together. */
const batchesPerCommit = 25

/** The address of a store that holds the corpus; seeded unless an earlier run has done it. */
export async function seedStore(
  folder: string,
  shape: Shape,
  server: PostgresServer | null,
): Promise<string> {
  if (server !== null)
    return fillDatabase(server, nameStore('postgres', shape), url => fillStore(url, shape, 'PostgreSQL'))
  const path = await fillFile(folder, nameStore('sqlite', shape), path =>
    fillStore(`sqlite:${path}`, shape, 'SQLite'),
  )
  return `sqlite:${path}`
}

/** A file under its final name only once it is filled: a run that was interrupted begins again. */
export async function fillFile(
  folder: string,
  { prefix, name }: DataName,
  fill: (path: string) => Promise<void>,
): Promise<string> {
  const path = join(folder, `${name}.db`)
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  for (const old of await readdir(folder)) if (old.startsWith(prefix)) await rm(join(folder, old))
  const partial = join(folder, `${prefix}partial.db`)
  await fill(partial)
  await rename(partial, path)
  return path
}

async function fillStore(url: string, shape: Shape, engine: string): Promise<void> {
  const total = countInvoices(shape)
  process.stderr.write(`Seeding ${engine} with ${total} invoices …\n`)
  await migrateStore(url)
  const store = await openWriteStore(url)
  const progress = createProgress('invoices')
  try {
    let done = 0
    const batches = makeBatches(makeRecords(shape), batchSize)
    for (let next = batches.next(); !next.done; ) {
      await store.transaction(async tx => {
        for (let count = 0; count < batchesPerCommit && !next.done; count++) {
          await tx.saveInvoices(next.value)
          done += next.value.length
          progress.update(`into ${engine}`, done, done / total)
          next = batches.next()
        }
      })
      // Lets a signal through: SQLite itself never waits.
      await setImmediate()
    }
    await store.transaction(tx => tx.saveSuccess('import', Date.now()))
    progress.print(`Seeded ${engine}: ${done} invoices (${progress.pace(done)}).`)
  } finally {
    await store.close()
  }
}

export function* makeBatches(records: Iterable<InvoiceRecord>, size: number): Generator<InvoiceRecord[]> {
  let batch: InvoiceRecord[] = []
  for (const record of records) {
    batch.push(record)
    if (batch.length < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
