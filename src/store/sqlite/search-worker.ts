/** A thread that runs searches, one for each message. Its `workerData` is the path of the database. */
import { parentPort, workerData } from 'node:worker_threads'
import { type InvoiceQuery, StoreUnavailable } from '../store.ts'
import { openReadOnly } from './database.ts'
import { attemptRead } from './failures.ts'
import { readPages } from './read-pages.ts'
import type { Answer } from './search-threads.ts'
import { lowerThisThread } from './thread-priority.ts'

lowerThisThread()
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
