/** The feed of changes over a few statements of each engine. */
import type { ChangeKind } from '../../change.ts'
import type { ChangeReads, ChangeWrites, StoredChange } from '../change-store.ts'
import type { Db } from './db.ts'

export interface FeedStatements {
  /** The customer's version, alone in the first row; then its changes after one. */
  customer(customerId: string, after: number, limit: number): Promise<CustomerRow[]>
  /** `last_seq` and `pruned_seq` as the first row's `seq` and `batch`; then the batches after a seq. */
  batches(after: number, limit: number): Promise<BatchRow[]>
  /** In any order; rows that are not visible yet are missing. */
  changes(spans: readonly Span[]): Promise<BatchedRow[]>
  /** Time that a commit may take to be visible everywhere. */
  settleMs: number
}

export interface CustomerRow {
  version: number | null
  previous: number
  invoice_id: string
  kind: ChangeKind
  at: number
}

export interface BatchRow {
  seq: number
  batch: number
  n: number
}

/** Places of a batch: those after `start`, up to `end`. */
export interface Span {
  batch: number
  start: number
  end: number
}

export interface BatchedRow extends Omit<StoredChange, 'seq'> {
  batch: number
  place: number
}

export function changeReads(feed: FeedStatements): ChangeReads {
  return {
    async readChanges(customerId, after, limit) {
      if (customerId === null) return readAll(feed, after, limit)
      const [state, ...rows] = await feed.customer(customerId, after ?? 0, after === null ? 0 : limit)
      const version = state?.version ?? 0
      if (after === null) return { changes: [], next: version }
      const [first] = rows
      if (first === undefined ? version > after : first.previous > after) return null
      const changes = rows.map(({ previous: _, version: seq, ...row }) => {
        return { seq: seq as number, customer_id: customerId, version: seq as number, ...row }
      })
      return { changes, next: changes.at(-1)?.seq ?? after }
    },
  }
}

async function readAll(feed: FeedStatements, after: number | null, limit: number) {
  const [state, ...batches] = await feed.batches(after ?? 0, after === null ? 0 : limit)
  const { seq: last, batch: pruned } = state as BatchRow
  if (after === null) {
    const settled = feed.settleMs === 0 ? last : Math.min(last, (Date.now() - feed.settleMs) * 1000)
    return { changes: [], next: Math.max(pruned, settled) }
  }
  if (after < pruned) return null
  const spans = chooseSpans(batches, after, limit)
  const rows = spans.length === 0 ? [] : await feed.changes(spans)
  const byPlace = new Map(rows.map(row => [`${row.batch} ${row.place}`, row]))
  const changes: StoredChange[] = []
  for (const { batch, start, end, before } of spans)
    for (let place = start + 1; place <= end; place++) {
      const found = byPlace.get(`${batch} ${place}`)
      // On Citus, another node may commit a moment later: nothing behind it is shown before it.
      if (found === undefined) return { changes, next: changes.at(-1)?.seq ?? after }
      const { batch: _, place: __, ...change } = found
      changes.push({ ...change, seq: before + place })
    }
  return { changes, next: changes.at(-1)?.seq ?? after }
}

/** The batches of a page; `before` is the seq before a batch's first change. */
function chooseSpans(batches: readonly BatchRow[], after: number, limit: number) {
  const spans: (Span & { before: number })[] = []
  let room = limit
  for (const { seq, batch, n } of batches) {
    if (room === 0) break
    const before = seq - n
    const start = Math.max(0, after - before)
    const end = Math.min(n, start + room)
    spans.push({ batch, start, end, before })
    room -= end - start
  }
  return spans
}

export function changeWrites(db: Db): ChangeWrites {
  return {
    async pruneChanges(before, limit) {
      const [feed] = await db.query<{ pruned_seq: number }>('SELECT pruned_seq FROM fatura.feed')
      const batches = await db.query<BatchRow>(
        'SELECT seq, batch, n FROM fatura.batches WHERE seq < $1 ORDER BY seq LIMIT 100',
        [Math.min(before * 1000, Number.MAX_SAFE_INTEGER)],
      )
      const spans = chooseSpans(batches, feed?.pruned_seq ?? 0, limit)
      const last = spans.at(-1)
      if (last === undefined) return 0
      for (const { batch, end } of spans)
        await db.query('DELETE FROM fatura.changes WHERE batch = $1 AND place <= $2', [batch, end])
      const pruned = last.before + last.end
      await db.query('DELETE FROM fatura.batches WHERE seq <= $1', [pruned])
      await db.query('UPDATE fatura.feed SET pruned_seq = $1 WHERE pruned_seq < $1', [pruned])
      return spans.reduce((sum, { start, end }) => sum + end - start, 0)
    },
  }
}
