/** Reads and writes the bound accounts, the lease and the set-aside records. These tables are small, and no API request reads them. */
import { notInForce } from '../../domain/document.ts'
import { type InvoiceKey, unsettledStatuses } from '../../domain/invoice.ts'
import {
  type BoundAccount,
  type ConnectorReads,
  type ConnectorWrites,
  type Correction,
  type Lease,
  type LeaseWrites,
  type Loss,
  type Recheck,
  refusedKinds,
  type SetAside,
} from '../connector-store.ts'
import { removeRows, writeRows } from './contents.ts'
import { type Db, type Insertion, literals, queryColumn } from './db.ts'

const hourMs = 60 * 60_000
const hourOf = (moment: number) => Math.floor(moment / hourMs)
const rechecksKeptHours = 7 * 24

const setAsideColumns = 'system, kind, id, reason, asked_stamp, due_at, first_at, last_at, tries'

const correctionInsertion: Insertion = {
  into: 'fatura.corrections',
  columns: { id: 'text', customer_id: 'text', found_at: 'bigint' },
  rest: 'ON CONFLICT (id) DO UPDATE SET customer_id = excluded.customer_id, found_at = excluded.found_at',
}

/** Repeats the condition of the index `invoices_uncertified`, so that the database uses this index. */
const isUncertified = `status = 'paid' AND (ix_status IS NULL OR ix_status IN (${literals(notInForce)}))
  AND summary NOT LIKE '%"ix_sync_state":"ignored"%'`

export function connectorReads(db: Db): ConnectorReads {
  return {
    listBoundAccounts: () =>
      db.query<BoundAccount>('SELECT system, account, bound_at FROM fatura.bound_accounts ORDER BY system'),
    async readLease() {
      const [lease] = await db.query<Lease>(
        'SELECT holder, epoch, beats, life FROM fatura.lease, fatura.freshness',
      )
      if (lease === undefined) throw new Error('The lease has no row: the store is damaged.')
      return lease
    },
    // A last try in the future was dated by a clock that was ahead. Its record sorts as the oldest, so that it does not wait for that time.
    listSetAside: (limit, system, { kind, id, reason, dueAt, newestFirst = false } = {}) =>
      db.query<SetAside>(
        `SELECT ${setAsideColumns} FROM fatura.set_aside
         WHERE system = coalesce($1, system) AND kind = coalesce($2, kind) AND id = coalesce($3, id)
           AND reason = coalesce($4, reason)${dueAt === undefined ? '' : ' AND due_at IS NOT NULL AND (due_at <= $7 OR last_at > $7)'}
         ORDER BY CASE WHEN last_at > $6 THEN 0 ELSE last_at END ${newestFirst ? 'DESC' : ''}, system, kind, id LIMIT $5`,
        [
          ...[system ?? null, kind ?? null, id ?? null, reason ?? null, limit, Date.now()],
          ...(dueAt === undefined ? [] : [dueAt]),
        ],
      ),
    readRechecks: at =>
      db.query<Recheck>(
        `SELECT system, CAST(sum(checked) AS bigint) AS checked, CAST(sum(corrected) AS bigint) AS corrected
         FROM fatura.rechecks WHERE hour > $1 AND hour <= $2 GROUP BY system ORDER BY system`,
        [hourOf(at) - 24, hourOf(at)],
      ),
    listCorrections: () =>
      db.query<Correction>('SELECT customer_id, id, found_at FROM fatura.corrections ORDER BY id'),
    async countUncertified(issuedBefore) {
      const sql = `SELECT count(*) FROM fatura.invoices ${db.byIndex('invoices_uncertified')}
        WHERE ${isUncertified} AND issued_at < $1`
      return (await queryColumn<number>(db, sql, [issuedBefore]))[0] ?? 0
    },
    countSetAside: () =>
      db.query(
        `SELECT system, kind, CASE WHEN kind IN (${literals(refusedKinds)}) THEN reason END AS reason, count(*) AS count
         FROM fatura.set_aside GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
      ),
    async groupByNode(customers) {
      if (!db.isCitus) return null
      const rows = await db.query<{ customer_id: string; node: string }>(
        `SELECT given.customer_id, place.nodename || ':' || place.nodeport AS node
         FROM unnest($1::text[]) AS given (customer_id) JOIN pg_dist_shard_placement place
           ON place.shardid = get_shard_id_for_distribution_column('fatura.invoices', given.customer_id)`,
        [customers],
      )
      const groups = Map.groupBy(rows, ({ node }) => node).values()
      return [...groups].map(group => group.map(({ customer_id }) => customer_id))
    },
  }
}

export function leaseWrites(db: Db): LeaseWrites {
  return {
    async takeLease({ epoch, beats }, holder) {
      const [taken] = await db.query<Lease>(
        `UPDATE fatura.lease SET holder = $1, epoch = epoch + 1, beats = 0
         WHERE epoch = $2 AND beats = $3
         RETURNING holder, epoch, beats, (SELECT life FROM fatura.freshness) AS life`,
        [holder, epoch, beats],
      )
      return taken ?? null
    },
    renewLease: epoch => beatLease(db, epoch),
    async releaseLease(epoch) {
      await db.query('UPDATE fatura.lease SET holder = NULL WHERE epoch = $1', [epoch])
    },
  }
}

async function beatLease(db: Db, epoch: number): Promise<number | null> {
  const sql =
    'UPDATE fatura.lease SET beats = beats + 1 WHERE epoch = $1 AND holder IS NOT NULL RETURNING beats'
  return (await queryColumn<number>(db, sql, [epoch]))[0] ?? null
}

const atRisk: Record<Loss, string> = {
  // Repeats the condition of the index of unsettled invoices, so that the database uses it. The second condition selects the drafts.
  deletion: `fatura.invoices WHERE status IN (${literals(unsettledStatuses)}) AND status = 'draft'`,
  lost_document: 'fatura.links WHERE ix_id IS NOT NULL',
}

export function connectorWrites(db: Db): ConnectorWrites {
  return {
    beatLease: epoch => beatLease(db, epoch),
    saveBoundAccount: ({ system, account, bound_at }) =>
      writeRows(db, 'boundAccounts', [[system, account, bound_at]]),
    async countAtRisk(loss) {
      return (await queryColumn<number>(db, `SELECT count(*) FROM ${atRisk[loss]}`))[0] ?? 0
    },
    async addRecheck({ system, checked, corrected }, at) {
      const hour = hourOf(at)
      await db.query(
        `INSERT INTO fatura.rechecks AS r (system, hour, checked, corrected) VALUES ($1, $2, $3, $4)
         ON CONFLICT (system, hour) DO UPDATE SET
           checked = r.checked + excluded.checked, corrected = r.corrected + excluded.corrected`,
        [system, hour, checked, corrected],
      )
      // Future hours come from a clock that was ahead. They are deleted too.
      const forgetBefore = hour - rechecksKeptHours
      await db.query('DELETE FROM fatura.rechecks WHERE hour < $1 OR hour > $2', [forgetBefore, hour])
    },
    async saveCorrections(corrections) {
      const rows = corrections.map(({ id, customer_id, found_at }) => [id, customer_id, found_at])
      await db.insert(correctionInsertion, rows)
    },
    removeCorrections: (ids, foundUntil = Number.MAX_SAFE_INTEGER) =>
      db.query<InvoiceKey>(
        `DELETE FROM fatura.corrections WHERE ${db.isAmong('id', '$1')} AND found_at <= $2 RETURNING customer_id, id`,
        [ids, foundUntil],
      ),
    findSetAside: ids =>
      db.query<SetAside>(`SELECT ${setAsideColumns} FROM fatura.set_aside WHERE ${db.isAmong('id', '$1')}`, [
        ids,
      ]),
    listSetAsideIds: (system, kind) =>
      queryColumn(db, 'SELECT id FROM fatura.set_aside WHERE system = $1 AND kind = $2', [system, kind]),
    async setAside({ system, kind, id, reason, asked_stamp = 0, due_at }, at) {
      await db.query(
        `INSERT INTO fatura.set_aside AS s (system, kind, id, reason, asked_stamp, due_at, first_at, last_at, tries)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, 1)
         ON CONFLICT (system, kind, id) DO UPDATE SET reason = excluded.reason, asked_stamp = excluded.asked_stamp,
           due_at = excluded.due_at, last_at = excluded.last_at, tries = s.tries + 1`,
        [system, kind, id, reason, asked_stamp, due_at, at],
      )
    },
    clearSetAside: keys =>
      removeRows(
        db,
        'setAside',
        keys.map(({ system, kind, id }) => [system, kind, id]),
      ),
  }
}
