/** Reads and prunes the feed of changes. Each engine has three statements to read it. */
import type { ChangeReads, StoredChange } from '../change-store.ts'
import { StoreUnavailable, type WriteTransaction } from '../store.ts'
import type { Db, DbValue } from './db.ts'
import type { EngineName } from './filters.ts'

/**
 * `customerChanges`: the first row has the version of customer $1. The customer's changes after version $2 follow, at most $3.
 * `commits`: the first row has the feed's `last_seq` as `seq` and its `pruned_seq` as `commit_id`. The commits after position $1 follow, at
 * most $2.
 * `commitChanges`: the changes of the commits $1, in any order. $2 and $3 hold, for each commit, the last position before and the last
 * position to return. Rows that are not visible yet are missing.
 */
export const feedStatements = {
  sqlite: {
    customerChanges: `
      SELECT (SELECT version FROM fatura.customers WHERE customer_id = $1) AS version,
        NULL AS previous, NULL AS invoice_id, NULL AS kind, NULL AS at, life, 0 AS is_standby FROM fatura.freshness
      UNION ALL SELECT * FROM (
        SELECT version, previous, invoice_id, kind, at, NULL, NULL FROM fatura.changes
        WHERE customer_id = $1 AND version > $2 ORDER BY version LIMIT $3)
      ORDER BY previous`,
    commits: `
      SELECT * FROM (
        SELECT last_seq AS seq, pruned_seq AS commit_id, 0 AS n, life, 0 AS is_standby FROM fatura.feed, fatura.freshness
        UNION ALL SELECT * FROM (
          SELECT seq, commit_id, n, NULL, NULL FROM fatura.commits WHERE seq > $1 ORDER BY seq LIMIT $2))
      ORDER BY n > 0, seq`,
    commitChanges: `
      SELECT commit_id, place, customer_id, invoice_id, kind, version, at FROM json_each($1) AS given
      CROSS JOIN fatura.changes ON commit_id = given.value AND place > $2 ->> given.key AND place <= $3 ->> given.key`,
  },
  postgres: {
    customerChanges: 'SELECT * FROM fatura.customer_changes($1, $2, $3)',
    commits: 'SELECT * FROM fatura.read_commits($1, $2)',
    commitChanges: 'SELECT * FROM fatura.commit_changes($1, $2, $3)',
  },
} as const

type AskFeed = <Row extends object>(
  name: keyof (typeof feedStatements)[EngineName],
  ...values: DbValue[]
) => Promise<Row[]>

/** Time in milliseconds within which Citus completes a commit that one of its nodes missed. */
const citusSettleMs = 120_000

/** Columns that are filled only in the first row of a result. */
interface StateRow {
  life: string
  /** True for a standby. SQLite returns this boolean as a number. */
  is_standby: boolean | number
}

interface CustomerRow extends StateRow, Pick<StoredChange, 'invoice_id' | 'kind' | 'at'> {
  version: number | null
  previous: number
}

interface CommitRow {
  seq: number
  commit_id: number
  n: number
}

interface CommittedRow extends Omit<StoredChange, 'seq'> {
  commit_id: number
  place: number
}

export function changeReadsOf(db: Db): ChangeReads {
  return changeReads((name, ...values) => db.query(feedStatements[db.engine][name], values), db.isCitus)
}

export function changeReads(ask: AskFeed, isCitus: boolean): ChangeReads {
  return {
    async readChanges(customerId, after, limit, life) {
      const wanted = after === null ? 0 : limit
      if (customerId === null) return readAll(ask, isCitus, after, wanted, life)
      const [state, ...rows] = await ask<CustomerRow>('customerChanges', customerId, after ?? 0, wanted)
      const { version: last, ...store } = state as CustomerRow
      const version = last ?? 0
      if (after === null) return { changes: [], next: version, life: store.life }
      if (!isOfThisStore(store, version, after, life)) return null
      const [first] = rows
      if (first === undefined ? version > after : first.previous > after) return null
      const changes = rows.map(({ version, invoice_id, kind, at }) => {
        return {
          seq: version as number,
          customer_id: customerId,
          version: version as number,
          invoice_id,
          kind,
          at,
        }
      })
      return { changes, next: changes.at(-1)?.seq ?? after, life: store.life }
    },
  }
}

/** Tells whether the position `after` belongs to this store's feed, which ends at `end`. */
function isOfThisStore(store: StateRow, end: number, after: number, life = store.life): boolean {
  if (life !== store.life) return false
  if (after <= end) return true
  if (store.is_standby) throw new StoreUnavailable('The replica is behind the place that was asked for.')
  return false
}

async function readAll(ask: AskFeed, isCitus: boolean, after: number | null, limit: number, wanted?: string) {
  const [state, ...commits] = await ask<CommitRow & StateRow>('commits', after ?? 0, limit)
  const { seq: last, commit_id: pruned, ...store } = state as CommitRow & StateRow
  const { life } = store
  if (after === null) {
    const settled = isCitus ? Math.min(last, (Date.now() - citusSettleMs) * 1000) : last
    return { changes: [], next: Math.max(pruned, settled), life }
  }
  if (after < pruned || !isOfThisStore(store, last, after, wanted)) return null
  const spans = chooseSpans(commits, after, limit)
  const listOf = (name: keyof (typeof spans)[0]) => spans.map(span => span[name])
  const rows =
    spans.length === 0
      ? []
      : await ask<CommittedRow>('commitChanges', listOf('commit_id'), listOf('start'), listOf('end'))
  const byPlace = new Map(rows.map(row => [`${row.commit_id} ${row.place}`, row]))
  const changes: StoredChange[] = []
  for (const { commit_id, start, end, before } of spans)
    for (let place = start + 1; place <= end; place++) {
      const found = byPlace.get(`${commit_id} ${place}`)
      // On Citus, a change on another node may become visible a moment later. Changes after it are returned only once it is visible.
      if (found === undefined) return { changes, next: changes.at(-1)?.seq ?? after, life }
      const { commit_id: _, place: __, ...change } = found
      changes.push({ ...change, seq: before + place })
    }
  return { changes, next: changes.at(-1)?.seq ?? after, life }
}

/**
 * Selects the commits of a page. Each span covers the positions after `start` up to `end` within its commit. `before` is the feed position
 * in front of the commit's first change.
 */
function chooseSpans(commits: readonly CommitRow[], after: number, limit: number) {
  const spans: { commit_id: number; start: number; end: number; before: number }[] = []
  let room = limit
  for (const { seq, commit_id, n } of commits) {
    if (room === 0) break
    const before = seq - n
    const start = Math.max(0, after - before)
    const end = Math.min(n, start + room)
    spans.push({ commit_id, start, end, before })
    room -= end - start
  }
  return spans
}

export function changeWrites(db: Db): Pick<WriteTransaction, 'pruneChanges'> {
  return {
    async pruneChanges(before, limit) {
      const [feed] = await db.query<{ pruned_seq: number }>('SELECT pruned_seq FROM fatura.feed')
      const commits = await db.query<CommitRow>(
        'SELECT seq, commit_id, n FROM fatura.commits WHERE seq < $1 ORDER BY seq LIMIT 100',
        [Math.min(before * 1000, Number.MAX_SAFE_INTEGER)],
      )
      const spans = chooseSpans(commits, feed?.pruned_seq ?? 0, limit)
      const last = spans.at(-1)
      if (last === undefined) return 0
      for (const { commit_id, end } of spans)
        await db.query('DELETE FROM fatura.changes WHERE commit_id = $1 AND place <= $2', [commit_id, end])
      const pruned = last.before + last.end
      await db.query('DELETE FROM fatura.commits WHERE seq <= $1', [pruned])
      await db.query('UPDATE fatura.feed SET pruned_seq = $1 WHERE pruned_seq < $1', [pruned])
      return spans.reduce((sum, { start, end }) => sum + end - start, 0)
    },
  }
}
