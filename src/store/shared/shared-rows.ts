/**
 * The rows that all writers share: the last observation, the streams and their freshness. A transaction
 * gathers what it will write there, and writes it just before its end. So nobody waits for these rows longer than an
 * engine takes for a commit, however long another transaction is.
 */
import type { Value } from '../contents.ts'
import type { OperatorStore, Stream, WriteTransaction } from '../store.ts'
import type { Db } from './db.ts'

export interface SharedRows extends Pick<WriteTransaction, 'saveStream' | 'saveSuccess'> {
  raiseObserved(observedAt: number): void
  /** Always in one order, so that two commits cannot wait for each other. */
  statements(engine: FreshnessStatements): { sql: string; values: Value[] }[]
}

/** An engine's statements around the streams that are saved. */
export interface FreshnessStatements {
  /** The saver of a stream has the freshness alone, so that none is overlooked. */
  hold: readonly string[]
  /** Saves the freshness by the streams as they are now. */
  save: string
}

export function gatherSharedRows(): SharedRows {
  let lastObserved: number | null = null
  const streams = new Map<string, Stream>()
  return {
    raiseObserved(observedAt) {
      lastObserved = Math.max(lastObserved ?? 0, observedAt)
    },
    async saveStream(stream) {
      streams.set(stream.name, stream)
    },
    async saveSuccess(name, at) {
      streams.set(name, { name, cursor: null, succeeded_at: at, failed_at: null, error: null })
    },
    statements({ hold, save }) {
      const raise = lastObserved === null ? [] : [{ sql: raiseTo, values: [lastObserved] }]
      if (streams.size === 0) return raise
      return [
        ...raise,
        ...hold.map(sql => ({ sql, values: [] })),
        ...[...streams.values()].map(({ name, cursor, succeeded_at, failed_at, error }) => {
          return { sql: saveStream, values: [name, cursor, succeeded_at, failed_at, error] }
        }),
        { sql: save, values: [] },
      ]
    },
  }
}

const raiseTo = 'UPDATE fatura.observation SET last_at = $1 WHERE last_at < $1'

const saveStream = `
  INSERT INTO fatura.streams (name, cursor, succeeded_at, failed_at, error) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, succeeded_at = excluded.succeeded_at,
    failed_at = excluded.failed_at, error = excluded.error`

export function sharedReads(db: Db): Pick<OperatorStore, 'listStreams' | 'readLastObserved'> {
  return {
    listStreams: () =>
      db.query<Stream>(
        'SELECT name, cursor, succeeded_at, failed_at, error FROM fatura.streams ORDER BY name',
      ),
    async readLastObserved() {
      const [row] = await db.query<{ last_at: number }>('SELECT last_at FROM fatura.observation')
      return row?.last_at ?? 0
    },
  }
}
