/**
 * Threads for long searches, because SQLite blocks the thread that runs a statement. With two threads, a long search does not delay a short
 * one.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type InvoicePage, type InvoiceQuery, StoreUnavailable } from '../store.ts'

/** The worker file has the same extension as this file, which is .js in a compiled package. */
const workerFile = new URL(`./search-worker${extname(import.meta.url)}`, import.meta.url)

const maxThreads = 2

/** Limits in milliseconds: the time of a search, and its wait for a thread. PostgreSQL has the same limits. */
const [searchAtMostMs, waitAtMostMs] = [5_000, 1_500]

export type Answer = { page: InvoicePage } | { unavailable: string } | { fault: string }

export function openSearchThreads(path: string, limitMs = searchAtMostMs) {
  const threads = new Threads(path)
  return {
    async search(query: InvoiceQuery): Promise<InvoicePage> {
      const thread = await threads.take()
      const asked = ask(thread, query)
      // A search that takes too long is abandoned. Its thread is free again when SQLite has finished.
      asked.catch(() => {}).finally(() => threads.giveBack(thread))
      const answer = await within(limitMs, `A search took over ${limitMs} ms.`, asked)
      if ('page' in answer) return answer.page
      throw 'unavailable' in answer ? new StoreUnavailable(answer.unavailable) : new Error(answer.fault)
    },
    close: () => threads.close(),
  }
}

class Threads {
  private readonly path: string
  private readonly all = new Set<Worker>()
  private readonly idle = new Set<Worker>()
  private readonly waiting = new Set<(thread: Worker) => void>()

  constructor(path: string) {
    this.path = path
  }

  async take(): Promise<Worker> {
    const [free] = this.idle
    if (free !== undefined) {
      this.idle.delete(free)
      return free
    }
    if (this.all.size < maxThreads) return this.start()
    const { promise, resolve } = Promise.withResolvers<Worker>()
    this.waiting.add(resolve)
    const taken = within(waitAtMostMs, 'No thread for a search became free in time.', promise)
    return taken.finally(() => this.waiting.delete(resolve))
  }

  /** Takes back a thread after a search. A thread that has ended is replaced when another search waits. */
  giveBack(thread: Worker): void {
    const hasEnded = !this.all.has(thread)
    const [next] = this.waiting
    if (next !== undefined) {
      this.waiting.delete(next)
      next(hasEnded ? this.start() : thread)
    } else if (!hasEnded) this.idle.add(thread)
  }

  async close(): Promise<void> {
    await Promise.all([...this.all].map(thread => thread.terminate()))
  }

  private start(): Worker {
    const thread = new Worker(workerFile, { workerData: this.path })
    this.all.add(thread)
    // An idle thread does not keep the process alive.
    thread.unref()
    const forget = () => {
      this.all.delete(thread)
      this.idle.delete(thread)
    }
    return thread.on('error', forget).on('exit', forget)
  }
}

function ask(thread: Worker, query: InvoiceQuery): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const lose = (cause: unknown) => reject(new StoreUnavailable('The thread that searches ended.', { cause }))
  thread.on('message', resolve).on('error', lose).on('exit', lose)
  thread.postMessage(query)
  return promise.finally(() => thread.off('message', resolve).off('error', lose).off('exit', lose))
}

function within<T>(ms: number, failure: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new StoreUnavailable(failure)), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
