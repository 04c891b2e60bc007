/**
 * SQLite writes in the thread that asks, and waits there for the disk. The connector has much else to do: its store is in a
 * thread of its own, so that the next answers are read and mapped while the last ones are committed.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { InvoiceRecord } from '../../invoice.ts'
import {
  type LockWait,
  observationStamp,
  StoreError,
  StoreUnavailable,
  type WriteStore,
  type WriteTransaction,
} from '../store.ts'
import { toRow } from './invoice-row.ts'
import { createTurns, type InTurn } from './operator.ts'
import { walkSqlite } from './walk-invoices.ts'
import type { SqliteTransaction } from './writer.ts'

/** How many rows are sent to the other thread at once. */
const rowsAtOnce = 200

/** With the ending of this file: in a package it is compiled. */
const workerFile = new URL(`./writer-worker${extname(import.meta.url)}`, import.meta.url)

export interface WriterData {
  path: string
  patienceMs: number | undefined
}

/** `of` is the transaction that a call belongs to, by the id of the question that began it. */
export type Question = { id: number } & (
  | { open: true }
  | { call: string; args: unknown[]; of?: number }
  | { begin: true }
  | { end: 'commit' | 'rollback'; of: number }
)

export type Answer =
  | { id: number; value: unknown }
  | { id: number; failure: Failure }
  /** Another process has kept the file locked for a while. */
  | { waitsFor: string }

export interface Failure {
  kind: 'store' | 'unavailable' | 'fault'
  message: string
  stack: string | undefined
}

type Asked = Question extends infer Each ? (Each extends Question ? Omit<Each, 'id'> : never) : never

interface Asker {
  resolve(value: unknown): void
  reject(error: Error): void
}

export interface ThreadedStore {
  store: WriteStore
  /** Between two transactions: whoever writes over another connection of this process finds the file free then. */
  inTurn: InTurn
}

export async function openWriterThread(
  path: string,
  { patienceMs, onWait }: Pick<LockWait, 'patienceMs' | 'onWait'> = {},
): Promise<ThreadedStore> {
  const askers = new Map<number, Asker>()
  let worker: Worker | null = null
  let state: 'open' | 'closing' | 'closed' = 'open'
  const closed = new StoreUnavailable(`The store at ${path} is closed.`)
  /** The last transaction that began, until its end. */
  let begun: Promise<unknown> = Promise.resolve()
  let lastId = 0

  function start(): Worker {
    const started = new Worker(workerFile, { workerData: { path, patienceMs } satisfies WriterData })
    started.on('message', (answer: Answer) => receive(started, answer))
    // A thread that failed is replaced at the next question; what it had not committed is gone with it.
    started.on('error', error => lose(started, error as Error))
    started.on('exit', code => lose(started, new Error(`It ended with code ${code}.`)))
    return started
  }

  function receive(from: Worker, answer: Answer): void {
    if ('waitsFor' in answer) {
      onWait?.(answer.waitsFor)
      return
    }
    const asker = askers.get(answer.id)
    askers.delete(answer.id)
    // A thread that waits for questions keeps no process alive; one that owes answers does.
    if (askers.size === 0) from.unref()
    if ('value' in answer) asker?.resolve(answer.value)
    else asker?.reject(readFailure(answer.failure))
  }

  function lose(lost: Worker, cause: Error): void {
    if (worker !== lost) return
    worker = null
    for (const { reject } of askers.values())
      reject(new StoreError(`The thread that writes to ${path} ended.`, { cause }))
    askers.clear()
  }

  function ask<T>(asked: Asked): Promise<T> {
    if (state === 'closed') return Promise.reject(closed)
    worker ??= start()
    const asking = worker
    const id = ++lastId
    return new Promise<T>((resolve, reject) => {
      asking.postMessage({ id, ...asked })
      askers.set(id, { resolve: resolve as Asker['resolve'], reject })
      asking.ref()
    })
  }

  /** What has begun comes to its end first; what waits for another process does not begin any more. */
  async function close(): Promise<void> {
    if (state !== 'open') return
    state = 'closing'
    await begun
    const closing = worker && ask({ call: 'close', args: [] })
    state = 'closed'
    await closing
    await end()
  }

  async function end(): Promise<void> {
    await worker?.terminate()
  }

  /** Methods that are asked for in the other thread. */
  function methodsOf<T>(names: readonly string[], of?: number): T {
    const call = (name: string, args: unknown[]) =>
      ask(of === undefined ? { call: name, args } : { call: name, args, of })
    return Object.fromEntries(names.map(name => [name, (...args: unknown[]) => call(name, args)])) as T
  }

  async function begin(): Promise<{ of: number; names: string[] }> {
    if (state !== 'open') throw closed
    try {
      return await ask({ begin: true })
    } catch (error) {
      throw state === 'open' ? error : closed
    }
  }

  async function transact<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T> {
    const transaction = await begin()
    const result = complete(transaction, work)
    begun = result.catch(() => {})
    return result
  }

  async function complete<T>(
    { of, names }: { of: number; names: string[] },
    work: (tx: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    const { saveRows, ...tx } = methodsOf<SqliteTransaction>(names, of)
    let result: T
    try {
      result = await work({
        ...tx,
        saveInvoices: (records, observedAt = observationStamp()) =>
          saveInParts(records, observedAt, saveRows),
        // Whoever asks may know more of them, which is not for the other thread.
        findKnown: keys => tx.findKnown(keys.map(({ customer_id, id }) => ({ customer_id, id }))),
      })
    } catch (error) {
      await ask({ end: 'rollback', of }).catch(() => {})
      throw error
    }
    await ask({ end: 'commit', of })
    return result
  }

  const inTurn = createTurns()
  try {
    const names = await ask<string[]>({ open: true })
    const store: WriteStore = {
      ...methodsOf<WriteStore>(names),
      transaction: work => inTurn(() => transact(work)),
      walkInvoices: walk => walkSqlite(path, walk),
      close,
    }
    return { store, inTurn }
  } catch (error) {
    await end()
    throw error
  }
}

/**
 * What can be made of a record without the database is made here: texts are passed on with less work than objects. Some
 * are stored while the next are made.
 */
async function saveInParts(
  records: readonly InvoiceRecord[],
  observedAt: number | readonly number[],
  saveRows: SqliteTransaction['saveRows'],
): Promise<number> {
  const saving: Promise<number>[] = []
  for (let start = 0; start < records.length; start += rowsAtOnce) {
    const rows = records.slice(start, start + rowsAtOnce).map(toRow)
    const stamps = typeof observedAt === 'number' ? observedAt : observedAt.slice(start, start + rowsAtOnce)
    saving.push(saveRows(rows, stamps))
  }
  return (await Promise.all(saving)).reduce((sum, changed) => sum + changed, 0)
}

function readFailure({ kind, message, stack }: Failure): Error {
  if (kind === 'unavailable') return new StoreUnavailable(message)
  if (kind === 'store') return new StoreError(message)
  return Object.assign(new Error(message), { stack })
}
