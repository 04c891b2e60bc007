/** Threads for long searches, since SQLite answers in the thread that asks. There are two: a long search holds up no short one. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type InvoicePage, type InvoiceQuery, StoreUnavailable } from '../store.ts'

/** With the ending of this file: in a package it is compiled. */
const workerFile = new URL(`./search-worker${extname(import.meta.url)}`, import.meta.url)

const maxThreads = 2

/** Limits of a search's time, and of its wait for a thread. PostgreSQL has the same. */
const [searchAtMostMs, waitAtMostMs] = [5_000, 1_500]

export type Answer = { page: InvoicePage } | { unavailable: string } | { fault: string }

export function openSearchThreads(path: string, limitMs = searchAtMostMs) {
  const threads = new Set<Worker>()
  const idle: Worker[] = []
  const waiting = new Set<(thread: Worker) => void>()

  function start(): Worker {
    const thread = new Worker(workerFile, { workerData: path })
    threads.add(thread)
    // A thread that waits for questions keeps no process alive.
    thread.unref()
    const forget = () => {
      threads.delete(thread)
      if (idle.includes(thread)) idle.splice(idle.indexOf(thread), 1)
    }
    return thread.on('error', forget).on('exit', forget)
  }

  async function take(): Promise<Worker> {
    const free = idle.pop()
    if (free !== undefined) return free
    if (threads.size < maxThreads) return start()
    const { promise, resolve } = Promise.withResolvers<Worker>()
    waiting.add(resolve)
    const taken = within(waitAtMostMs, 'No thread for a search became free in time.', promise)
    return taken.finally(() => waiting.delete(resolve))
  }

  function giveBack(thread: Worker): void {
    const [next] = waiting
    const free = threads.has(thread) ? thread : next && start()
    if (free === undefined) return
    if (next === undefined) idle.push(free)
    else {
      waiting.delete(next)
      next(free)
    }
  }

  function ask(thread: Worker, query: InvoiceQuery): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const lose = (cause: unknown) =>
      reject(new StoreUnavailable('The thread that searches ended.', { cause }))
    thread.on('message', resolve).on('error', lose).on('exit', lose)
    thread.postMessage(query)
    return promise.finally(() => thread.off('message', resolve).off('error', lose).off('exit', lose))
  }

  return {
    async search(query: InvoiceQuery): Promise<InvoicePage> {
      const thread = await take()
      const asked = ask(thread, query)
      // A search that takes too long is given up; its thread is free again once SQLite has come to the end.
      asked.catch(() => {}).finally(() => giveBack(thread))
      const answer = await within(limitMs, `A search took over ${limitMs} ms.`, asked)
      if ('page' in answer) return answer.page
      throw 'unavailable' in answer ? new StoreUnavailable(answer.unavailable) : new Error(answer.fault)
    },
    async close(): Promise<void> {
      await Promise.all([...threads].map(thread => thread.terminate()))
    },
  }
}

function within<T>(ms: number, failure: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new StoreUnavailable(failure)), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
