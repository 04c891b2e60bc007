/**
 * SQLite answers in the thread that asks. A search among a large customer's invoices takes as long as hundreds of pages, so
 * it is asked in another thread, and the event loop goes on serving. The thread starts with the first such search.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type InvoicePage, type InvoiceQuery, StoreUnavailable } from '../store.ts'

/** With the ending of this file: in a package it is compiled. */
const workerFile = new URL(`./search-worker${extname(import.meta.url)}`, import.meta.url)

export interface Question {
  id: number
  query: InvoiceQuery
}

export type Answer = { id: number } & (
  | { page: InvoicePage | null }
  /** What may pass, and what is a fault. */
  | { unavailable: string }
  | { fault: string }
)

interface Asker {
  resolve(page: InvoicePage | null): void
  reject(error: Error): void
}

export interface SearchThread {
  /** Null when the customer has no counters any more. */
  search(query: InvoiceQuery): Promise<InvoicePage | null>
  close(): Promise<void>
}

export function openSearchThread(path: string): SearchThread {
  const askers = new Map<number, Asker>()
  let worker: Worker | null = null
  let lastId = 0

  function start(): Worker {
    const started = new Worker(workerFile, { workerData: path })
    started.on('message', receive)
    // A thread that failed is replaced at the next search.
    started.on('error', error => lose(started, error as Error))
    started.on('exit', code => lose(started, new Error(`It ended with code ${code}.`)))
    // A thread that waits for questions keeps no process alive.
    started.unref()
    return started
  }

  function receive(answer: Answer): void {
    const asker = askers.get(answer.id)
    askers.delete(answer.id)
    if ('page' in answer) asker?.resolve(answer.page)
    else if ('unavailable' in answer) asker?.reject(new StoreUnavailable(answer.unavailable))
    else asker?.reject(new Error(answer.fault))
  }

  function lose(lost: Worker, cause: Error): void {
    if (worker !== lost) return
    worker = null
    for (const { reject } of askers.values())
      reject(new StoreUnavailable('The thread that searches ended.', { cause }))
    askers.clear()
  }

  return {
    search(query) {
      worker ??= start()
      const id = ++lastId
      worker.postMessage({ id, query } satisfies Question)
      return new Promise((resolve, reject) => askers.set(id, { resolve, reject }))
    },
    async close() {
      await worker?.terminate()
    },
  }
}
