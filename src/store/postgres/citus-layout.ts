/** Says where each table and function lies on Citus. Every key begins with customer_id, so that each request goes to one shard. */

/**
 * Where a table lies on Citus.
 * `reference`: complete on every node. Writing it needs all nodes.
 * `shared`: at the coordinator, and readable from every node. Writing it needs no other node.
 * `coordinator`: at the coordinator, and unknown to other nodes. Only writers use it.
 * `customer_id` or `id`: the column that chooses the shard of a row. All rows of a customer lie together.
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
    // `invoices_readable` is a view for people. They read it only at the coordinator.
    'invoices_readable',
  ],
  customer_id: [
    ...['invoices', 'invoice_lines', 'invoice_payments', 'account_entries', 'customers'],
    ...['counters', 'tombstones', 'links', 'journal', 'changes'],
  ],
  // Documents are distributed by their own ID. A document is known before its invoice, and may never have one.
  id: ['documents', 'document_clients', 'document_relations'],
})

/**
 * Where a function runs on Citus.
 * `key` and `list`: on the node with the rows of the customer, who is the first argument. Citus plans a `list` function at each call.
 * `everywhere`: on any node.
 */
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
