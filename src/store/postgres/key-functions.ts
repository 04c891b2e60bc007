/**
 * The functions that read rows by their keys alone: to read a table as a whole is forbidden here, and would count as so dear
 * that a server with JIT compiles the plan at every call. The freshness is read alone, since on Citus it lies elsewhere.
 *
 * Each statement reads one table. They all see the moment of the call, since the functions are STABLE; and Citus keeps the
 * plan of such a statement, where it would plan a join again at every call.
 */
import { keyAttributes } from './function-parts.ts'

const readFreshness = `
  CREATE FUNCTION fatura.read_freshness() RETURNS bigint ${keyAttributes} AS $body$
  BEGIN RETURN (SELECT f.synced_at FROM fatura.freshness f WHERE f.only_one); END $body$;`

/** When the connector last wrote, in milliseconds: by it, servers that hold copies of one store are compared. */
const readWrittenAt = `
  CREATE FUNCTION fatura.read_written_at() RETURNS bigint ${keyAttributes} AS $body$
  DECLARE v_observed_at bigint; v_told_at bigint;
  BEGIN
    SELECT o.last_at / 1000 INTO v_observed_at FROM fatura.observation o WHERE o.only_one;
    SELECT max(greatest(s.succeeded_at, s.failed_at)) INTO v_told_at FROM fatura.streams s WHERE s.name > '';
    RETURN greatest(v_observed_at, v_told_at);
  END $body$;`

/**
 * Page 1 as it is asked for by default: a line of total and version, then the summaries. One text, because a
 * row that a function gives is put down and taken up again at the server: 6 of 40 µs.
 */
const firstPage = `
  CREATE FUNCTION fatura.first_page(p_customer_id text) RETURNS text ${keyAttributes} AS $body$
  DECLARE v_counted text; v_head text;
  BEGIN
    SELECT c.total || ' ' || c.version, c.head INTO v_counted, v_head
    FROM fatura.customers c WHERE c.customer_id = p_customer_id;
    RETURN coalesce(v_counted, '0 0') || E'\\n' || coalesce(v_head, '');
  END $body$;`

const readVersion = `
  CREATE FUNCTION fatura.read_version(p_customer_id text) RETURNS bigint ${keyAttributes} AS $body$
  BEGIN RETURN (SELECT c.version FROM fatura.customers c WHERE c.customer_id = p_customer_id); END $body$;`

const findInvoice = `
  CREATE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
  RETURNS TABLE (summary text, lines text) ${keyAttributes} AS $body$
  BEGIN
    SELECT i.summary INTO summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    SELECT l.lines INTO lines FROM fatura.invoice_lines l
    WHERE l.customer_id = p_customer_id AND l.invoice_id = p_invoice_id;
    RETURN NEXT;
  END $body$;`

export const keyFunctions = [readFreshness, readWrittenAt, firstPage, readVersion, findInvoice].join('\n')
