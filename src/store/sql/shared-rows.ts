/**
 * Collects the rows that all writers share, and writes them just before the commit. Writers then wait as briefly as possible for each
 * other.
 */
import { randomBytes } from 'node:crypto'
import { type Freshness, freshness } from '../../sources/stream-names.ts'
import type { Value } from '../contents.ts'
import type { Stream, WriteStore } from '../store.ts'
import type { Db } from './db.ts'
import type { EngineName } from './filters.ts'

export type SharedRows = ReturnType<typeof gatherSharedRows>

export function gatherSharedRows() {
  let lastObserved: number | null = null
  const streams = new Map<string, Stream>()
  /**
   * Identifies the changes of invoices in this transaction. `id` is random, so that no other transaction has it. `count` is the number of
   * changes written so far.
   */
  const commit = { id: Math.floor(Math.random() * 2 ** 52), count: 0 }
  return {
    commit,
    raiseObserved(observedAt: number): void {
      lastObserved = Math.max(lastObserved ?? 0, observedAt)
    },
    async saveStream(stream: Stream): Promise<void> {
      streams.set(stream.name, stream)
    },
    async saveSuccess(name: string, at: number): Promise<void> {
      streams.set(name, { name, cursor: null, succeeded_at: at, failed_at: null, error: null })
    },
    /** Returns the statements in a fixed order, so that two commits cannot wait for each other. */
    statements(engine: EngineName) {
      const statements: { sql: string; values: Value[] }[] = []
      const add = (sql: string, ...values: Value[]) => statements.push({ sql, values })
      if (lastObserved !== null) add(raiseTo, lastObserved)
      if (streams.size > 0) {
        if (engine === 'postgres') add(holdFreshness)
        for (const { name, cursor, succeeded_at, failed_at, error } of streams.values())
          add(saveStream, name, cursor, succeeded_at, failed_at, error)
        add(saveFreshness[engine])
      }
      // The feed's row comes last, so that it is locked only during the commit itself.
      if (commit.count > 0) {
        add(appendToFeed, commit.count, Date.now() * 1000)
        add(saveCommit, commit.id, commit.count)
      }
      return statements
    },
  }
}

export const raiseTo = 'UPDATE fatura.observation SET last_stamp = $1 WHERE last_stamp < $1'

/**
 * Positions in the feed follow the order of commits, because the feed's row stays locked until the commit. They are based on the clock, so
 * that a position shows its time.
 */
const appendToFeed =
  'UPDATE fatura.feed SET last_seq = CASE WHEN last_seq + $1 > $2 THEN last_seq + $1 ELSE $2 END'
const saveCommit = 'INSERT INTO fatura.commits (seq, commit_id, n) SELECT last_seq, $1, $2 FROM fatura.feed'

/**
 * On PostgreSQL, several transactions write streams. This lock makes them compute the freshness one after another, so that no stream is
 * missed.
 */
const holdFreshness = 'UPDATE fatura.observation SET last_stamp = last_stamp WHERE only_one'

const follows = isOneThat('follows')
const isAlone = isOneThat('alone')

/** Computes the time up to which the records match their sources, over all streams. Null until everything was read once. */
const currentFreshness = `
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN ${follows} THEN succeeded_at END), min(succeeded_at))
    END AS synced_at
  FROM fatura.streams
  WHERE ${follows} OR ${isOneThat('once')}
    OR (${isAlone} AND NOT EXISTS (SELECT 1 FROM fatura.streams WHERE NOT ${isAlone}))`

const saveFreshness: Record<EngineName, string> = {
  sqlite: `UPDATE fatura.freshness SET synced_at = (${currentFreshness})`,
  // The streams are read into a variable first, because other nodes of Citus do not have their table.
  postgres: `DO $body$ DECLARE v_synced_at bigint; BEGIN
    v_synced_at := (${currentFreshness});
    UPDATE fatura.freshness SET synced_at = v_synced_at WHERE only_one AND synced_at IS DISTINCT FROM v_synced_at;
  END $body$`,
}

const saveStream = `
  INSERT INTO fatura.streams (name, cursor, succeeded_at, failed_at, error) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, succeeded_at = excluded.succeeded_at,
    failed_at = excluded.failed_at, error = excluded.error`

/** A new life makes the cursors and ETags of the store's former life invalid. */
export function lifeWrites(db: Db): Pick<WriteStore, 'renewLife'> {
  return {
    async renewLife() {
      await db.query('UPDATE fatura.freshness SET life = $1', [randomBytes(6).toString('hex')])
    },
  }
}

function isOneThat(wanted: Freshness): string {
  const names = Object.entries(freshness).filter(([, each]) => each === wanted)
  return `(${names.map(([name]) => `name = '${name}' OR name LIKE '%:${name}'`).join(' OR ')})`
}
