/** The thread that searches: takes questions, and answers each when it is done. Its data is the path of the database. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { StoreUnavailable } from '../store.ts'
import { createRunSearch } from './run-searches.ts'
import type { Answer, Question } from './search-thread.ts'

const lessThanUsual = 10

/** Where a page and a search want the same core, the page goes first. Only Linux gives a thread a priority of its own. */
function goLast(): void {
  try {
    const threadId = readlinkSync('/proc/thread-self').split('/').at(-1)
    setPriority(Number(threadId), lessThanUsual)
  } catch {
    // Elsewhere all threads are alike, and searches go on as fast as pages.
  }
}

goLast()
const runSearch = createRunSearch(workerData as string)

parentPort?.on('message', async ({ id, query }: Question) => {
  parentPort?.postMessage(await answer(id, query))
})

async function answer(id: number, query: Question['query']): Promise<Answer> {
  try {
    return { id, page: await runSearch(query) }
  } catch (error) {
    const { message, stack } = error as Error
    return error instanceof StoreUnavailable ? { id, unavailable: message } : { id, fault: stack ?? message }
  }
}
