/** On Citus: spreads the tables and the functions by customer, and holds the catalog against what should be there. */

import { StoreError } from '../store.ts'
import {
  coordinatorTables,
  distributedTables,
  everywhereFunctions,
  keyFunctions,
  listFunctions,
  referenceTables,
  sharedTables,
} from './schema.ts'
import type { AskSchema } from './schema-version.ts'

/** The table that the others of its column are colocated with. */
const anchors = { customer_id: 'fatura.invoices', id: 'fatura.documents' } as const
const anchor = anchors.customer_id

const customerFunctions = [...keyFunctions, ...listFunctions]

/** How each table is to lie: `reference`, `shared`, the column it is spread by, or null for what no other node knows. */
const wantedWays: Readonly<Record<string, string | null>> = {
  ...Object.fromEntries(referenceTables.map(table => [table, 'reference'])),
  ...Object.fromEntries(sharedTables.map(table => [table, 'shared'])),
  ...Object.fromEntries(coordinatorTables.map(table => [table, null])),
  ...distributedTables,
}

/** Settings of a transaction that changes the schema of spread tables; elsewhere none is needed. */
const oneAfterAnother = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"

export async function hasCitus(ask: AskSchema): Promise<boolean> {
  return (await ask("SELECT FROM pg_extension WHERE extname = 'citus'")).length > 0
}

/** Citus' own copies of shards are written without a common commit: they would drift apart. */
export async function checkReplication(ask: AskSchema): Promise<void> {
  const [row] = await ask<{ factor: string }>(
    "SELECT current_setting('citus.shard_replication_factor') AS factor",
  )
  if (row?.factor !== '1')
    throw new StoreError(
      `citus.shard_replication_factor must be 1, not ${row?.factor}: give each node a standby instead.`,
    )
}

/** Before anything else in a transaction: what made a table must be the connection that changes it. */
export async function changeOneAfterAnother(ask: AskSchema): Promise<void> {
  if (await hasCitus(ask)) await ask(oneAfterAnother)
}

/** Within the transaction that changed the schema. What lies as it should stays as it is; rows move with their table. */
export async function distribute(ask: AskSchema): Promise<void> {
  if (!(await hasCitus(ask))) return
  const { tables, functions } = await readPlaces(ask)
  for (const [table, wanted] of Object.entries(wantedWays)) {
    const place = tables.get(table)
    if (place === undefined || place.way === wanted) continue
    if (place.way !== null) await ask(`SELECT undistribute_table('${table}')`)
    if (wanted === 'reference') await ask(`SELECT create_reference_table('${table}')`)
    else if (wanted === 'shared') await ask(`SELECT citus_add_local_table_to_metadata('${table}')`)
    else if (wanted !== null) await ask(spread(table, wanted as keyof typeof anchors))
  }
  for (const name of [...customerFunctions, ...everywhereFunctions]) {
    const place = functions.get(name)
    if (place === undefined) continue
    const byCustomer = customerFunctions.includes(name)
    // Citus chooses the shard of a function that reads more than one table while it plans: no plan serves all customers.
    if (listFunctions.includes(name) && !place.isPlannedEachTime)
      await ask(`ALTER FUNCTION ${place.signature} SET plan_cache_mode = force_custom_plan`)
    if (place.argument === null && (byCustomer || !place.isSpread))
      await ask(
        `SELECT create_distributed_function('${place.signature}'${byCustomer ? `, 'p_customer_id', colocate_with => '${anchor}'` : ''})`,
      )
  }
}

function spread(table: string, column: keyof typeof anchors): string {
  const together = table === anchors[column] ? 'none' : anchors[column]
  return `SELECT create_distributed_table('${table}', '${column}', colocate_with => '${together}')`
}

/** Tables and functions in a wrong place, in words; null where there is no Citus. */
export async function findMisplaced(ask: AskSchema): Promise<string[] | null> {
  if (!(await hasCitus(ask))) return null
  const { tables, functions } = await readPlaces(ask)
  const isRight = ([name, wanted]: [string, string | null]) => {
    const table = tables.get(name)
    // Nodes other than the coordinator know nothing of what lies there alone.
    if (wanted === null) return (table?.way ?? null) === null
    const together = anchors[wanted as keyof typeof anchors] as string | undefined
    return (
      table?.way === wanted &&
      (together === undefined || table.colocation === tables.get(together)?.colocation)
    )
  }
  const together = tables.get(anchor)?.colocation
  const isCallable = (name: string) => {
    const place = functions.get(name)
    if (everywhereFunctions.includes(name)) return place?.isSpread === true
    const isPlanned = keyFunctions.includes(name) || place?.isPlannedEachTime
    return place?.argument === 0 && place.colocation === together && isPlanned === true
  }
  return [
    ...Object.entries(wantedWays).flatMap(each => (isRight(each) ? [] : [each[0]])),
    ...[...customerFunctions, ...everywhereFunctions]
      .filter(name => !isCallable(name))
      .map(name => `${name}()`),
  ]
}

interface TablePlace {
  name: string
  /** `reference`, `shared`, or the column it is spread by; null when no other node knows it. */
  way: string | null
  colocation: number | null
}

interface FunctionPlace {
  name: string
  signature: string
  isSpread: boolean
  /** Place of the argument that chooses the node, from 0; null when none does. */
  argument: number | null
  colocation: number | null
  isPlannedEachTime: boolean
}

async function readPlaces(ask: AskSchema) {
  const tables = await ask<TablePlace>(`
    SELECT c.oid::regclass::text AS name, p.colocationid AS colocation,
      CASE p.partmethod WHEN 'h' THEN column_to_column_name(p.logicalrelid, p.partkey) WHEN 'n' THEN CASE p.repmodel WHEN 't' THEN 'reference' ELSE 'shared' END END AS way
    FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
    WHERE c.relnamespace = to_regnamespace('fatura') AND c.relkind = 'r'`)
  const functions = await ask<FunctionPlace>(`
    SELECT 'fatura.' || f.proname AS name, f.oid::regprocedure::text AS signature, o.objid IS NOT NULL AS "isSpread",
      o.distribution_argument_index AS argument, o.colocationid AS colocation,
      coalesce('plan_cache_mode=force_custom_plan' = ANY (f.proconfig), false) AS "isPlannedEachTime"
    FROM pg_proc f LEFT JOIN pg_dist_object o ON o.classid = 'pg_proc'::regclass AND o.objid = f.oid
    WHERE f.pronamespace = to_regnamespace('fatura')`)
  return {
    tables: new Map(tables.map(table => [table.name, table])),
    functions: new Map(functions.map(place => [place.name, place])),
  }
}
