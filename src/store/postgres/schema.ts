/**
 * Where each table and function lies on Citus. Every key begins with customer_id, so that each request is routed to one shard. Text is
 * compared with collation "C": order never depends on the server's locale. The tables themselves stand in migrations/.
 */

/** Whole at every node: to write them takes all nodes. */
export const referenceTables: readonly string[] = ['fatura.migrations']

/** Tables that everybody reads: at the coordinator, where writers are, so that no other node is needed to write them. */
export const sharedTables: readonly string[] = [
  'fatura.freshness',
  'fatura.tokens',
  'fatura.keys',
  'fatura.scopes',
  'fatura.batches',
  'fatura.feed',
]

/** Tables that only writers use: at the coordinator, where to write them costs no other node anything. */
export const coordinatorTables: readonly string[] = [
  'fatura.observation',
  'fatura.streams',
  'fatura.pins',
  'fatura.lease',
  'fatura.set_aside',
  'fatura.drift',
  'fatura.endpoints',
]

/** By the column that chooses a row's shard. All rows of a customer lie together. */
export const distributedTables: Readonly<Record<string, 'customer_id' | 'id'>> = {
  'fatura.invoices': 'customer_id',
  'fatura.invoice_lines': 'customer_id',
  'fatura.customers': 'customer_id',
  'fatura.counts': 'customer_id',
  'fatura.tombstones': 'customer_id',
  'fatura.links': 'customer_id',
  'fatura.journal': 'customer_id',
  'fatura.changes': 'customer_id',
  // A document is known before its invoice is, and may never have one.
  'fatura.documents': 'id',
  'fatura.document_clients': 'id',
  'fatura.document_relations': 'id',
}

/** Functions that read rows by a key of the customer that is their first argument; called where these lie. */
export const keyFunctions: readonly string[] = [
  'fatura.first_page',
  'fatura.read_version',
  'fatura.find_invoice',
  'fatura.customer_changes',
]

/** Functions that read lists of that customer; called there too. */
export const listFunctions: readonly string[] = [
  'fatura.list_invoices',
  'fatura.search_invoices',
  'fatura.read_sums',
]

/** Functions that are called on any node. */
export const everywhereFunctions: readonly string[] = [
  'fatura.list_counted',
  'fatura.read_freshness',
  'fatura.read_token',
  'fatura.read_key',
  'fatura.covers_customer',
  'fatura.read_batches',
  'fatura.batch_changes',
  'fatura.schema_version',
  'fatura.schema_state',
  'fatura.tables_at',
  'fatura.split_list',
  'fatura.find_known',
  'fatura.save_invoices',
  'fatura.count_customers',
]
