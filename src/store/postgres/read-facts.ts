import { randomUUID } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import type { NodeFacts, ServerFacts, StoreFacts } from '../facts.ts'
import { explainState } from '../migrations.ts'
import { findMisplaced, hasCitus } from './distribute.ts'
import { openReadPool, read } from './pool.ts'
import { type AskSchema, readState, schema } from './schema.ts'

/** A replica that has replayed everything it received has no delay, however old the last transaction is. */
const serverQuery = `
  SELECT
    current_setting('server_version') AS version,
    current_setting('server_version_num')::integer / 10000 AS major,
    current_setting('server_encoding') AS encoding,
    current_setting('transaction_read_only') = 'on' AS read_only,
    current_user AS role,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock,
    CASE
      WHEN NOT pg_is_in_recovery() THEN NULL
      WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
      ELSE (extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)::bigint
    END AS lag`

/** Rights are checked one by one. `has_table_privilege` with a list of rights is true when any of them is granted. */
const tablesQuery = `
  SELECT relname AS name,
    has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
      AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE') AS is_writable
  FROM pg_class
  WHERE relnamespace = to_regnamespace('fatura') AND relkind IN ('r', 'p') AND relname <> 'migrations'
  ORDER BY relname`

export async function readPostgresFacts(url: string): Promise<StoreFacts> {
  const pool = openReadPool(url)
  const ask = <Row extends object>(text: string) => read<Row>(pool, { text })
  try {
    const [{ version, read_only, ...server }] = (await ask<ServerRow>(serverQuery)) as [ServerRow]
    const tables = await ask<{ name: string; is_writable: boolean }>(tablesQuery)
    const state = await readState(ask)
    return {
      engine: `PostgreSQL ${version.split(' ')[0]}`,
      schema: state.hashes.length,
      needed: schema.migrations.length,
      schemaProblem: explainState('The database', state, schema),
      isReadOnly: read_only,
      server: {
        ...server,
        misplaced: await findMisplaced(ask),
        nodes: await readNodes(ask),
        keepsStatements: await keepsStatements(pool),
        tables: tables.map(({ name }) => name),
        unwritable: tables.filter(({ is_writable }) => !is_writable).map(({ name }) => name),
      },
      file: null,
    }
  } finally {
    await pool.end()
  }
}

type ServerRow = Pick<ServerFacts, 'major' | 'encoding' | 'clock' | 'lag' | 'role'> & {
  version: string
  read_only: boolean
}

/** SQL that runs on each node. A right that everybody has belongs to the grantee 0. */
const nodeState = `
  SELECT json_build_object(
    'isStandby', pg_is_in_recovery(),
    'isReadOnly', current_setting('default_transaction_read_only') = 'on',
    'stuck', (SELECT count(*) FROM pg_prepared_xacts
      WHERE database = current_database() AND prepared < clock_timestamp() - interval '1 minute'),
    'isPublic', (SELECT bool_or(r.grantee = 0 AND r.privilege_type = 'CONNECT')
      FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) r
      WHERE d.datname = current_database()))`

/** The time limit of a node is shorter than that of the whole query, so a silent node does not fail the query. */
const nodesQuery = `
  SELECT n.nodename || ':' || n.nodeport AS at, r.success, r.result
  FROM run_command_on_all_nodes(
    CASE WHEN set_config('citus.node_connection_timeout', '2s', true) IS NOT NULL THEN $node$${nodeState}$node$ END) r
  JOIN pg_dist_node n ON n.nodeid = r.nodeid ORDER BY n.nodeid`

/** Reads the state of each Citus node. Returns null without Citus. */
async function readNodes(ask: AskSchema): Promise<NodeFacts[] | null> {
  if (!(await hasCitus(ask))) return null
  const rows = await ask<{ at: string; success: boolean; result: string }>(nodesQuery)
  return rows.map(({ at, success, result }) =>
    success
      ? { at, failure: null, ...(JSON.parse(result) as Omit<NodeFacts, 'at' | 'failure'>) }
      : { at, failure: result, isStandby: false, isReadOnly: false, stuck: 0, isPublic: false },
  )
}

/** PostgreSQL's error code for a prepared statement whose name exists already. */
const isThereAlready = '42P05'

/**
 * Tells whether each session has its own prepared statements. Two sessions prepare a statement with the same name. A pooler gives the
 * second session the server connection that the first one used last. If the pooler does not track prepared statements, the name exists
 * already.
 */
async function keepsStatements(pool: Pool): Promise<boolean> {
  const name = `fatura_${randomUUID().slice(0, 8)}`
  const sessions: PoolClient[] = []
  try {
    const first = await pool.connect()
    sessions.push(first)
    const second = await pool.connect()
    sessions.push(second)
    await first.query({ name, text: 'SELECT 1' })
    return await prepareToo(second, name)
  } finally {
    for (const session of sessions) session.release(true)
  }
}

/** Prepares a statement in a transaction that leaves nothing behind. Other clients may use the same server connection afterwards. */
async function prepareToo(session: PoolClient, name: string): Promise<boolean> {
  await session.query('BEGIN')
  await session.query('SAVEPOINT before')
  try {
    await session.query({ name, text: 'SELECT 1' })
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== isThereAlready) throw error
    await session.query('ROLLBACK TO SAVEPOINT before')
    await session.query(`DEALLOCATE ${name}`)
    return false
  } finally {
    await session.query('COMMIT')
  }
}
