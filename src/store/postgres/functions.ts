/**
 * What the API's role may do: call these, each of which takes the customer. They run with their owner's rights, blind to
 * what the caller's search path holds, and are planned once a connection.
 */
import { keyAttributes } from './function-parts.ts'
import { listCounted, listInvoices } from './list-functions.ts'
import { searchInvoices } from './search-functions.ts'

/**
 * Page 1 as it is asked for by default: a line of total, version and freshness, then the summaries. One text, because a
 * row that a function gives is put down and taken up again at the server: 6 of 40 µs.
 */
const firstPage = `
  CREATE FUNCTION fatura.first_page(p_customer_id text) RETURNS text ${keyAttributes} AS $body$
  DECLARE v_page text;
  BEGIN
    SELECT coalesce(c.total, 0) || ' ' || coalesce(c.version, 0) || ' ' || coalesce(f.synced_at::text, '') || E'\\n'
      || coalesce(c.head, '') INTO v_page
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
    RETURN v_page;
  END $body$;`

const others = `
  CREATE FUNCTION fatura.read_snapshot(p_customer_id text, OUT version bigint, OUT synced_at bigint)
  ${keyAttributes} AS $body$
  BEGIN
    SELECT c.version, f.synced_at INTO version, synced_at
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
  END $body$;

  CREATE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
  RETURNS TABLE (summary text, lines text, synced_at bigint) ${keyAttributes} AS $body$
  BEGIN RETURN QUERY
    SELECT i.summary, l.lines, (SELECT f.synced_at FROM fatura.freshness f)
    FROM fatura.invoices i
    LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
    WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
  END $body$;

  CREATE FUNCTION fatura.find_token(p_id text) RETURNS SETOF fatura.tokens ${keyAttributes} AS $body$
  BEGIN RETURN QUERY SELECT * FROM fatura.tokens t WHERE t.id = p_id; END $body$;

  CREATE FUNCTION fatura.schema_version() RETURNS integer ${keyAttributes} AS $body$
  BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;

  CREATE FUNCTION fatura.schema_state(OUT version integer, OUT sha256 text, OUT is_rewriting boolean)
  ${keyAttributes} AS $body$
  BEGIN
    SELECT m.version, m.sha256, EXISTS (SELECT FROM fatura.migrations o WHERE o.rewriting IS NOT NULL)
    INTO version, sha256, is_rewriting
    FROM fatura.migrations m ORDER BY m.version DESC LIMIT 1;
  END $body$;`

/** All of them, as the newest migration holds them: `npm run functions` writes them there. */
export const functions = [firstPage, listCounted, listInvoices, searchInvoices, others]
  .join('\n')
  .replaceAll('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
  .replaceAll(/^ {2}/gm, '')
  .replaceAll(/[ \t]+$/gm, '')
  .trim()

/** The line in a migration that the functions follow. */
export const functionsMark = '-- Functions, written here by npm run functions.\n'

/** The functions that read what belongs to a customer. */
export const customerFunctions = [
  'fatura.first_page',
  'fatura.list_invoices',
  'fatura.search_invoices',
  'fatura.read_snapshot',
  'fatura.find_invoice',
]
