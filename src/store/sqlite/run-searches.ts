/**
 * Searches among a large customer's invoices, in a thread of their own. Each has a connection of its own while it lasts, so
 * that all of it comes from one snapshot, and they take turns, so that a long one does not hold up a short one.
 */
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as loopTurn } from 'node:timers/promises'
import { type InvoicePage, type InvoiceQuery, StoreUnavailable } from '../store.ts'
import { openReadOnly } from './database.ts'
import { attemptRead } from './failures.ts'
import { prepareOnce, readCounted } from './read-counted.ts'
import type { Steps } from './search-counted.ts'

/** How long a search goes on before the other one has its turn. */
const sliceMs = 2

/** How long a search may take. PostgreSQL has the same limit. */
const defaultMaxSearchMs = 5_000

/** More would only take turns at one thread. */
const connectionCount = 2

/** How long a search waits for a connection, as on PostgreSQL. */
const maxWaitMs = 1_500

interface Connection {
  db: DatabaseSync
  search(query: InvoiceQuery): Steps<InvoicePage | null>
}

export function createRunSearch(
  path: string,
  maxSearchMs = defaultMaxSearchMs,
): (query: InvoiceQuery) => Promise<InvoicePage | null> {
  const connections = Array.from({ length: connectionCount }, (): Connection => {
    const db = openReadOnly(path)
    return { db, search: readCounted(db, prepareOnce(db)).search }
  })
  const idle = [...connections]
  const waiting = new Set<(connection: Connection) => void>()
  let slices: Promise<void> = Promise.resolve()

  async function take(): Promise<Connection> {
    return idle.pop() ?? waitForOne()
  }

  function waitForOne(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const give = (connection: Connection) => {
        clearTimeout(timer)
        waiting.delete(give)
        resolve(connection)
      }
      const timer = setTimeout(() => {
        waiting.delete(give)
        reject(new StoreUnavailable('No connection for a search became free in time.'))
      }, maxWaitMs)
      waiting.add(give)
    })
  }

  function giveBack(connection: Connection): void {
    const [next] = waiting
    if (next === undefined) idle.push(connection)
    else next(connection)
  }

  async function nextSlice(): Promise<void> {
    const before = slices
    slices = before.then(() => loopTurn())
    await slices
  }

  async function finish(steps: Steps<InvoicePage | null>, deadline: number): Promise<InvoicePage | null> {
    try {
      for (;;) {
        await nextSlice()
        const begun = performance.now()
        if (begun > deadline) throw new StoreUnavailable(`A search took over ${maxSearchMs} ms.`)
        do {
          const { done, value } = attemptRead(() => steps.next())
          if (done) return value
        } while (performance.now() - begun < sliceMs)
      }
    } finally {
      steps.return(undefined as never)
    }
  }

  return async query => {
    const connection = await take()
    try {
      return await finish(connection.search(query), performance.now() + maxSearchMs)
    } finally {
      giveBack(connection)
    }
  }
}
