/** The place of each table and function on Citus. Every key begins with customer_id: each request is routed to one shard. */

/**
 * `reference`: whole at every node; to write them takes all nodes. `shared`: read by everybody, at the coordinator, where
 * writers are, so that no other node is needed to write them. `coordinator`: used by writers alone, and known to no other node.
 * Else the column that chooses a row's shard: all rows of a customer lie together.
 */
export type Place = 'reference' | 'shared' | 'coordinator' | 'customer_id' | 'id'

export const tables: Readonly<Record<string, Place>> = {
  'fatura.migrations': 'reference',
  'fatura.freshness': 'shared',
  'fatura.tokens': 'shared',
  'fatura.keys': 'shared',
  'fatura.scopes': 'shared',
  'fatura.batches': 'shared',
  'fatura.feed': 'shared',
  'fatura.observation': 'coordinator',
  'fatura.streams': 'coordinator',
  'fatura.pins': 'coordinator',
  'fatura.lease': 'coordinator',
  'fatura.set_aside': 'coordinator',
  'fatura.drift': 'coordinator',
  'fatura.endpoints': 'coordinator',
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

/** `key` and `list`: called where the rows of the customer lie that is the first argument. `everywhere`: called on any node. */
export const functions: Readonly<Record<string, 'key' | 'list' | 'everywhere'>> = {
  'fatura.first_page': 'key',
  'fatura.read_version': 'key',
  'fatura.find_invoice': 'key',
  'fatura.customer_changes': 'key',
  'fatura.list_invoices': 'list',
  'fatura.search_invoices': 'list',
  'fatura.read_sums': 'list',
  'fatura.list_counted': 'everywhere',
  'fatura.read_freshness': 'everywhere',
  'fatura.read_token': 'everywhere',
  'fatura.read_key': 'everywhere',
  'fatura.covers_customer': 'everywhere',
  'fatura.read_batches': 'everywhere',
  'fatura.batch_changes': 'everywhere',
  'fatura.schema_version': 'everywhere',
  'fatura.schema_state': 'everywhere',
  'fatura.tables_at': 'everywhere',
  'fatura.split_list': 'everywhere',
  'fatura.find_known': 'everywhere',
  'fatura.save_invoices': 'everywhere',
  'fatura.count_customers': 'everywhere',
}
