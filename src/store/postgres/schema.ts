/**
 * Where each table and function lies on Citus. Every key begins with customer_id, so that each request is routed to one shard. Text is
 * compared with collation "C": order never depends on the server's locale. The tables themselves stand in migrations/.
 */

/** What belongs to no customer, and is to be everywhere on Citus. */
export const referenceTables: readonly string[] = [
  'fatura.migrations',
  'fatura.observation',
  'fatura.freshness',
  'fatura.streams',
  'fatura.tokens',
  'fatura.keys',
  'fatura.documents',
  'fatura.document_clients',
  'fatura.pins',
  'fatura.lease',
  'fatura.set_aside',
]

/** What belongs to a customer, and lies with the customer's other rows on Citus. */
export const distributedTables: readonly string[] = [
  'fatura.invoices',
  'fatura.invoice_lines',
  'fatura.customers',
  'fatura.counts',
  'fatura.search_days',
  'fatura.search_signs',
  'fatura.parties',
  'fatura.tombstones',
  'fatura.links',
  'fatura.journal',
]

/** What reads rows of the customer that is its first argument, and is called where these lie. */
export const customerFunctions: readonly string[] = [
  'fatura.first_page',
  'fatura.list_invoices',
  'fatura.search_invoices',
  'fatura.read_snapshot',
  'fatura.find_invoice',
]

/** What is called on whatever node somebody is connected to. */
export const everywhereFunctions: readonly string[] = [
  'fatura.list_counted',
  'fatura.find_token',
  'fatura.find_key',
  'fatura.schema_version',
  'fatura.schema_state',
]
