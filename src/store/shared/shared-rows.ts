/** Rows that all writers share, gathered and written just before the commit: nobody waits for them longer than it takes. */
import type { Value } from '../contents.ts'
import type { Stream } from '../store.ts'

export interface FreshnessStatements {
  /** The saver of a stream has the freshness alone, so that none is overlooked. */
  hold: readonly string[]
  save: string
}

export type SharedRows = ReturnType<typeof gatherSharedRows>

export function gatherSharedRows() {
  let lastObserved: number | null = null
  const streams = new Map<string, Stream>()
  /** The transaction's changes of invoices: a number that no other transaction has, and how many are written so far. */
  const batch = { number: Math.floor(Math.random() * 2 ** 52), count: 0 }
  return {
    batch,
    raiseObserved(observedAt: number): void {
      lastObserved = Math.max(lastObserved ?? 0, observedAt)
    },
    async saveStream(stream: Stream): Promise<void> {
      streams.set(stream.name, stream)
    },
    async saveSuccess(name: string, at: number): Promise<void> {
      streams.set(name, { name, cursor: null, succeeded_at: at, failed_at: null, error: null })
    },
    /** Always in one order, so that two commits cannot wait for each other. */
    statements({ hold, save }: FreshnessStatements): { sql: string; values: Value[] }[] {
      const raise = lastObserved === null ? [] : [{ sql: raiseTo, values: [lastObserved] }]
      // Last of all: nobody holds the feed's row for longer than the commit itself.
      const append =
        batch.count === 0
          ? []
          : [
              { sql: appendToFeed, values: [batch.count, Date.now() * 1000] },
              { sql: saveBatch, values: [batch.number, batch.count] },
            ]
      if (streams.size === 0) return [...raise, ...append]
      return [
        ...raise,
        ...hold.map(sql => ({ sql, values: [] })),
        ...[...streams.values()].map(({ name, cursor, succeeded_at, failed_at, error }) => {
          return { sql: saveStream, values: [name, cursor, succeeded_at, failed_at, error] }
        }),
        { sql: save, values: [] },
        ...append,
      ]
    },
  }
}

export const raiseTo = 'UPDATE fatura.observation SET last_at = $1 WHERE last_at < $1'

/** In the order of their commits, since the feed's row is held until then. By the clock, for a store restored from a backup. */
const appendToFeed =
  'UPDATE fatura.feed SET last_seq = CASE WHEN last_seq + $1 > $2 THEN last_seq + $1 ELSE $2 END'
const saveBatch = 'INSERT INTO fatura.batches (seq, batch, n) SELECT last_seq, $1, $2 FROM fatura.feed'

const saveStream = `
  INSERT INTO fatura.streams (name, cursor, succeeded_at, failed_at, error) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, succeeded_at = excluded.succeeded_at,
    failed_at = excluded.failed_at, error = excluded.error`
