/** On Citus: how each node is, as the node that is asked sees it. */
import type { NodeFacts } from '../facts.ts'
import { hasCitus } from './distribute.ts'
import type { AskSchema } from './schema-version.ts'

/** Runs at each node. Of the database's rights, those that everybody has have no grantee. */
const state = `
  SELECT json_build_object(
    'isStandby', pg_is_in_recovery(),
    'isReadOnly', current_setting('default_transaction_read_only') = 'on',
    'stuck', (SELECT count(*) FROM pg_prepared_xacts
      WHERE database = current_database() AND prepared < clock_timestamp() - interval '1 minute'),
    'isPublic', (SELECT bool_or(r.grantee = 0 AND r.privilege_type = 'CONNECT')
      FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) r
      WHERE d.datname = current_database()))`

/** A node that does not answer is given up before the question itself is. */
const nodesQuery = `
  SELECT n.nodename || ':' || n.nodeport AS at, r.success, r.result
  FROM run_command_on_all_nodes(
    CASE WHEN set_config('citus.node_connection_timeout', '2s', true) IS NOT NULL THEN $node$${state}$node$ END) r
  JOIN pg_dist_node n ON n.nodeid = r.nodeid ORDER BY n.nodeid`

/** Null where there is no Citus. */
export async function readNodes(ask: AskSchema): Promise<NodeFacts[] | null> {
  if (!(await hasCitus(ask))) return null
  const rows = await ask<{ at: string; success: boolean; result: string }>(nodesQuery)
  return rows.map(({ at, success, result }) =>
    success
      ? { at, failure: null, ...(JSON.parse(result) as Omit<NodeFacts, 'at' | 'failure'>) }
      : { at, failure: result, isStandby: false, isReadOnly: false, stuck: 0, isPublic: false },
  )
}
