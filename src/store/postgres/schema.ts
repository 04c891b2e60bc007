/** The place of each table and function on Citus. Every key begins with customer_id: each request is routed to one shard. */

/**
 * `reference`: whole at every node; to write them takes all nodes. `shared`: read by everybody, at the coordinator, where
 * writers are, so that no other node is needed to write them. `coordinator`: used by writers alone, and known to no other node.
 * Else the column that chooses a row's shard: all rows of a customer lie together.
 */
export type Place = 'reference' | 'shared' | 'coordinator' | 'customer_id' | 'id'

export const tables = placed<Place>({
  reference: ['migrations'],
  shared: ['freshness', 'tokens', 'keys', 'scopes', 'commits', 'feed'],
  coordinator: [
    'observation',
    'streams',
    'bound_accounts',
    'lease',
    'set_aside',
    'rechecks',
    'corrections',
    'outgoing_webhooks',
    // A view for people. It is read at the coordinator.
    'invoices_readable',
  ],
  customer_id: [
    ...['invoices', 'invoice_lines', 'invoice_payments', 'account_entries', 'customers'],
    ...['counts', 'tombstones', 'links', 'journal', 'changes'],
  ],
  // A document is known before its invoice is, and may never have one.
  id: ['documents', 'document_clients', 'document_relations'],
})

/** `key` and `list`: called where the rows of the customer lie that is the first argument. `everywhere`: called on any node. */
export const functions = placed<'key' | 'list' | 'everywhere'>({
  key: ['read_version', 'find_invoice', 'customer_changes'],
  list: ['list_invoices', 'search_invoices', 'read_sums', 'read_open', 'read_account'],
  everywhere: [
    ...['list_counted', 'read_freshness', 'read_token', 'read_key', 'covers_customer'],
    ...['read_commits', 'commit_changes', 'schema_version', 'schema_state'],
    ...['tables_at', 'find_known', 'count_customers'],
  ],
})

function placed<P extends string>(names: Record<P, readonly string[]>): Readonly<Record<string, P>> {
  const places = Object.entries(names) as [P, readonly string[]][]
  return Object.fromEntries(places.flatMap(([place, some]) => some.map(name => [`fatura.${name}`, place])))
}
