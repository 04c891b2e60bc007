/**
 * The rows that all writers share: the last observation, the streams and what is told of their freshness. A transaction
 * gathers what it will write there, and writes it in one message with its commit. So nobody waits for these rows longer
 * than the server takes for a commit, however long another transaction is, and even if its process stands still.
 */
import pg, { type PoolClient } from 'pg'
import type { Stream } from '../store.ts'

export interface SharedRows {
  raiseObserved(observedAt: number): void
  saveStream(stream: Stream): void
  /** Always in one order, so that two commits cannot wait for each other. */
  commit(client: PoolClient): Promise<void>
}

export function gatherSharedRows(): SharedRows {
  let lastObserved: number | null = null
  const streams = new Map<string, Stream>()
  return {
    raiseObserved(observedAt) {
      lastObserved = Math.max(lastObserved ?? 0, observedAt)
    },
    saveStream(stream) {
      streams.set(stream.name, stream)
    },
    async commit(client) {
      const statements = [
        ...(lastObserved === null ? [] : [raiseTo(lastObserved)]),
        ...(streams.size === 0 ? [] : writeStreams([...streams.values()])),
        'COMMIT',
      ]
      await client.query(statements.join(';\n'))
    },
  }
}

function raiseTo(observedAt: number): string {
  return `UPDATE fatura.observation SET last_at = greatest(last_at, ${literal(observedAt)}) WHERE only_one`
}

/** Whoever saves a stream has the freshness alone, so that none is overlooked. */
function writeStreams(streams: readonly Stream[]): string[] {
  const rows = streams.map(({ name, cursor, succeeded_at, failed_at, error }) =>
    [name, cursor, succeeded_at, failed_at, error].map(literal).join(', '),
  )
  return [
    'UPDATE fatura.freshness SET synced_at = synced_at WHERE only_one',
    ...rows.map(
      row => `
      INSERT INTO fatura.streams (name, cursor, succeeded_at, failed_at, error) VALUES (${row})
      ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, succeeded_at = excluded.succeeded_at,
        failed_at = excluded.failed_at, error = excluded.error`,
    ),
    'UPDATE fatura.freshness SET synced_at = (SELECT synced_at FROM fatura.current_freshness) WHERE only_one',
  ]
}

/** Several statements in one message take no parameters. */
function literal(value: string | number | null): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return pg.escapeLiteral(value.replaceAll('\0', ''))
  if (!Number.isSafeInteger(value)) throw new Error(`A moment must be a whole number, not ${value}.`)
  return String(value)
}
