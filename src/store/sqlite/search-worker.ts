/** A thread that searches: takes a question, and answers it. Its data is the path of the database. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { type InvoiceQuery, StoreUnavailable } from '../store.ts'
import { openReadOnly } from './database.ts'
import { attemptRead } from './failures.ts'
import { readPages } from './read-pages.ts'
import type { Answer } from './search-threads.ts'

const lessThanUsual = 10

// Where a page and a search want the same core, the page goes first. Only Linux gives a thread a priority of its own.
try {
  const threadId = readlinkSync('/proc/thread-self').split('/').at(-1)
  setPriority(Number(threadId), lessThanUsual)
} catch {
  // Elsewhere all threads are alike, and searches go on as fast as pages.
}
const pages = readPages(openReadOnly(workerData as string))

parentPort?.on('message', (query: InvoiceQuery) => parentPort?.postMessage(answer(query)))

function answer(query: InvoiceQuery): Answer {
  try {
    const page = attemptRead(() => pages.readPage(query))
    return page === null ? { fault: 'A search had no answer.' } : { page }
  } catch (error) {
    const { message, stack } = error as Error
    return error instanceof StoreUnavailable ? { unavailable: message } : { fault: stack ?? message }
  }
}
