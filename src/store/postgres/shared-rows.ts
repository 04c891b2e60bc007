/** How a transaction ends: the rows that all writers share are written in one message with its commit. */
import pg, { type PoolClient } from 'pg'
import type { Value } from '../contents.ts'
import type { FreshnessStatements, SharedRows } from '../shared/shared-rows.ts'

/**
 * The row of the last observation stands for the freshness. What the streams say is read first: Citus, which passes the
 * freshness on to other nodes, knows nothing of them.
 */
const freshness: FreshnessStatements = {
  hold: ['UPDATE fatura.observation SET last_at = last_at WHERE only_one'],
  save: `DO $body$ DECLARE v_synced_at bigint; BEGIN
    SELECT synced_at INTO v_synced_at FROM fatura.current_freshness;
    UPDATE fatura.freshness SET synced_at = v_synced_at WHERE only_one AND synced_at IS DISTINCT FROM v_synced_at;
  END $body$`,
}

/** Even where the process stands still from here on, nobody waits for it. */
export async function commit(client: PoolClient, shared: SharedRows): Promise<void> {
  const statements = shared.statements(freshness).map(({ sql, values }) => inline(sql, values))
  await client.query([...statements, 'COMMIT'].join(';\n'))
}

/** Several statements in one message take no parameters. */
function inline(sql: string, values: readonly Value[]): string {
  return sql.replaceAll(/\$(\d+)/g, (_, place) => literal(values[Number(place) - 1] ?? null))
}

function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return pg.escapeLiteral(value.replaceAll('\0', ''))
  if (!Number.isSafeInteger(value)) throw new Error(`A moment must be a whole number, not ${value}.`)
  return String(value)
}
