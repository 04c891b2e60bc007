/** Distributes tables and functions by customer on Citus, and compares Citus's catalog with the wanted state. */

import { StoreError } from '../store.ts'
import { functions, type Place, tables } from './citus-layout.ts'
import type { AskSchema } from './schema.ts'

/** Tables with which all other tables of the same distribution column are colocated. */
const anchors = { customer_id: 'fatura.invoices', id: 'fatura.documents' } as const
const anchor = anchors.customer_id

export async function hasCitus(ask: AskSchema): Promise<boolean> {
  return (await ask("SELECT FROM pg_extension WHERE extname = 'citus'")).length > 0
}

/** Throws when Citus makes copies of shards itself. It writes these copies without a common commit, so they could differ. */
export async function checkReplication(ask: AskSchema): Promise<void> {
  const [row] = await ask<{ factor: string }>(
    "SELECT current_setting('citus.shard_replication_factor') AS factor",
  )
  if (row?.factor !== '1')
    throw new StoreError(
      `citus.shard_replication_factor must be 1, not ${row?.factor}: give each node a standby instead.`,
    )
}

/**
 * Makes Citus change shards one after another. Must come first in a transaction. The connection that created a table must also be the one
 * that changes it.
 */
export async function changeOneAfterAnother(ask: AskSchema): Promise<void> {
  if (await hasCitus(ask)) await ask("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
}

/**
 * Distributes tables and functions, within the transaction that changed the schema. Correct ones stay unchanged. Rows move with their
 * table.
 */
export async function distribute(ask: AskSchema): Promise<void> {
  if (!(await hasCitus(ask))) return
  let found = await readPlaces(ask)
  for (const [table, wanted] of Object.entries(tables)) {
    const way = found.tables.get(table)?.way
    if (way === undefined || isRight(found, table, wanted)) continue
    if (way !== 'coordinator') await ask(`SELECT undistribute_table('${table}')`)
    if (wanted === 'reference') await ask(`SELECT create_reference_table('${table}')`)
    else if (wanted === 'shared') await ask(`SELECT citus_add_local_table_to_metadata('${table}')`)
    else if (wanted !== 'coordinator') {
      const together = table === anchors[wanted] ? 'none' : anchors[wanted]
      await ask(`SELECT create_distributed_table('${table}', '${wanted}', colocate_with => '${together}')`)
    }
    // Undistributing a table may change how other tables are colocated, so the catalog is read again.
    found = await readPlaces(ask)
  }
  for (const [name, kind] of Object.entries(functions)) {
    const place = found.functions.get(name)
    if (place === undefined) continue
    // Citus chooses the shard of a function that reads several tables when it plans the call. A cached plan would therefore be wrong for
    // other customers.
    if (kind === 'list' && !place.isPlannedEachTime)
      await ask(`ALTER FUNCTION ${place.signature} SET plan_cache_mode = force_custom_plan`)
    if (!isCallable(found, name, kind))
      await ask(
        `SELECT create_distributed_function('${place.signature}'${kind === 'everywhere' ? '' : `, 'p_customer_id', colocate_with => '${anchor}'`})`,
      )
  }
}

/** Returns the names of tables and functions that are distributed wrongly. Null without Citus. */
export async function findMisplaced(ask: AskSchema): Promise<string[] | null> {
  if (!(await hasCitus(ask))) return null
  const found = await readPlaces(ask)
  return [
    ...Object.entries(tables).flatMap(([table, wanted]) => (isRight(found, table, wanted) ? [] : table)),
    ...Object.entries(functions).flatMap(([name, kind]) =>
      isCallable(found, name, kind) ? [] : `${name}()`,
    ),
  ]
}

type Places = Awaited<ReturnType<typeof readPlaces>>

function isRight(found: Places, table: string, wanted: Place): boolean {
  const place = found.tables.get(table)
  // A table that lies only at the coordinator is unknown to other nodes, so it may be missing in their catalog.
  if (wanted === 'coordinator') return (place?.way ?? wanted) === wanted
  if (place?.way !== wanted) return false
  return wanted in anchors
    ? place.colocation === found.tables.get(anchors[wanted as keyof typeof anchors])?.colocation
    : true
}

function isCallable(found: Places, name: string, kind: string): boolean {
  const place = found.functions.get(name)
  if (kind === 'everywhere') return place?.isCitus === true
  const isPlanned = kind === 'key' || place?.isPlannedEachTime === true
  return place?.argument === 0 && place.colocation === found.tables.get(anchor)?.colocation && isPlanned
}

interface FunctionPlace {
  name: string
  signature: string
  isCitus: boolean
  /** Index of the argument that chooses the node, from 0. Null when no argument does. */
  argument: number | null
  colocation: number | null
  isPlannedEachTime: boolean
}

async function readPlaces(ask: AskSchema) {
  const tables = await ask<{ name: string; way: Place; colocation: number | null }>(`
    SELECT c.oid::regclass::text AS name, p.colocationid AS colocation,
      CASE p.partmethod WHEN 'h' THEN column_to_column_name(p.logicalrelid, p.partkey) WHEN 'n' THEN CASE p.repmodel WHEN 't' THEN 'reference' ELSE 'shared' END ELSE 'coordinator' END AS way
    FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
    WHERE c.relnamespace = to_regnamespace('fatura') AND c.relkind = 'r'`)
  const functions = await ask<FunctionPlace>(`
    SELECT 'fatura.' || f.proname AS name, f.oid::regprocedure::text AS signature, o.objid IS NOT NULL AS "isCitus",
      o.distribution_argument_index AS argument, o.colocationid AS colocation,
      coalesce('plan_cache_mode=force_custom_plan' = ANY (f.proconfig), false) AS "isPlannedEachTime"
    FROM pg_proc f LEFT JOIN pg_dist_object o ON o.classid = 'pg_proc'::regclass AND o.objid = f.oid
    WHERE f.pronamespace = to_regnamespace('fatura')`)
  return {
    tables: new Map(tables.map(table => [table.name, table])),
    functions: new Map(functions.map(place => [place.name, place])),
  }
}
