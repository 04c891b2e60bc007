/** The list: of any customer by counting its rows, of a large one by its counters. */
import { dayLength, everyDay, spans } from '../read-model/counting.ts'
import {
  attributes,
  clampPage,
  filters,
  given,
  inOrder,
  isFiltered,
  isUncounted,
  matching,
  page,
  readSummaries,
} from './function-parts.ts'

/** Counts the rows, unless the customer has counters. */
export const listInvoices = `
  CREATE FUNCTION fatura.list_invoices(${filters}, ${page}, OUT version bigint)
  ${attributes} AS $body$
  DECLARE
    v_counted boolean;
    v_filtered boolean := ${isFiltered};
  BEGIN
    SELECT c.total, c.version, c.counted INTO total, version, v_counted
    FROM fatura.customers c WHERE c.customer_id = p_customer_id;
    total := coalesce(total, 0);
    IF v_counted AND (v_filtered OR p_page > 1) AND NOT ${isUncounted} THEN
      SELECT l.total, l.page, l.summaries INTO total, page, summaries FROM fatura.list_counted(${given}) l;
      RETURN;
    END IF;
    IF v_filtered THEN
      SELECT count(*) INTO total FROM fatura.invoices i WHERE ${matching};
    END IF;
    ${clampPage};
    IF v_filtered THEN
      SELECT string_agg(r.summary, ',') INTO summaries FROM (
        SELECT i.summary FROM fatura.invoices i WHERE ${matching}
        ${inOrder} LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
    ELSE
      SELECT string_agg(r.summary, ',') INTO summaries FROM (
        SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id
        ${inOrder} LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
    END IF;
  END $body$;`

/** Counters of the state asked for, in a range of days. */
function readCounts(span: number, from: string, end: string): string {
  return `
        SELECT k.start, k.span, k.n FROM fatura.counts k
        WHERE k.customer_id = p_customer_id AND k.span = ${span} AND k.status = v_status AND k.ix = v_ix
          AND k.start >= ${from} AND k.start < ${end}`
}

/**
 * A page from a moment on, of the invoices of a state: each kind of filter has an index in the page's order. What is to be
 * skipped is skipped in the index alone. The counters say where the page ends; a lower bound would make the planner expect
 * so few rows that it could not tell the indexes apart.
 */
function readFrom(state: string): string {
  const found = `
          FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before${state}
          ${inOrder} LIMIT v_wanted`
  return `
      IF v_left = 0 THEN
        SELECT string_agg(r.summary, ',') INTO summaries FROM (SELECT i.summary ${found}) r;
      ELSE
        v_ids := ARRAY(SELECT i.id ${found} OFFSET v_left);
      END IF;`
}

/**
 * The counters give the total and the day in which the page begins; only within that day are invoices skipped. What then
 * follows is read from the state's own order, so that a rare state is not searched for among the others.
 *
 * It has no rights and settings of its own: it is called by `list_invoices`, and works with that one's.
 */
export const listCounted = `
  CREATE FUNCTION fatura.list_counted(${filters}, ${page}) LANGUAGE plpgsql STABLE AS $body$
  DECLARE
    v_first integer := coalesce(p_from / ${dayLength}, ${everyDay.first});
    v_end integer := coalesce(p_before / ${dayLength}, ${everyDay.end});
    v_whole_from integer := (v_first + ${spans.stretch - 1}) & ${-spans.stretch};
    v_whole_end integer := v_end & ${-spans.stretch};
    v_dated boolean := num_nonnulls(p_from, p_before) > 0;
    v_status text := coalesce(p_status, '');
    v_ix text := coalesce('=' || p_ix_status, '');
    v_starts integer[]; v_spans integer[]; v_ns bigint[];
    v_before bigint := v_end::bigint * ${dayLength};
    v_left bigint; v_wanted bigint; v_start integer; v_n bigint; v_ids text[];
  BEGIN
    IF NOT v_dated THEN
      SELECT k.n INTO total FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = ${spans.all} AND k.status = v_status AND k.ix = v_ix AND k.start = 0;
    END IF;
    IF v_dated OR p_page > 1 THEN
      IF v_whole_from >= v_whole_end THEN
        v_whole_from := v_first;
        v_whole_end := v_first;
      END IF;
      SELECT array_agg(q.start), array_agg(q.span), array_agg(q.n), sum(q.n) INTO v_starts, v_spans, v_ns, total FROM (
        ${readCounts(spans.day, 'v_whole_end', 'v_end')}
        UNION ALL ${readCounts(spans.stretch, 'v_whole_from', 'v_whole_end')}
        UNION ALL ${readCounts(spans.day, 'v_first', 'v_whole_from')}
        ORDER BY start DESC) q;
    END IF;
    total := coalesce(total, 0);
    ${clampPage};
    IF total = 0 THEN
      RETURN;
    END IF;
    v_left := (page - 1) * p_page_size;
    v_wanted := least(p_page_size, total - v_left);
    IF v_left > 0 THEN
      FOR v_at IN 1 .. cardinality(v_ns) LOOP
        v_start := v_starts[v_at];
        EXIT WHEN v_left < v_ns[v_at];
        v_left := v_left - v_ns[v_at];
        v_start := NULL;
      END LOOP;
      IF v_spans[array_position(v_starts, v_start)] = ${spans.stretch} THEN
        FOR v_start, v_n IN SELECT q.start, q.n FROM (
          ${readCounts(spans.day, 'v_start', `v_start + ${spans.stretch}`)}) q ORDER BY q.start DESC
        LOOP
          EXIT WHEN v_left < v_n;
          v_left := v_left - v_n;
          v_start := NULL;
        END LOOP;
      END IF;
      IF v_start IS NULL THEN
        RAISE 'The counters of a customer do not add up. Run: fatura doctor --repair';
      END IF;
      v_before := (v_start + 1)::bigint * ${dayLength};
    END IF;
    IF p_status IS NULL AND p_ix_status IS NULL THEN ${readFrom('')}
    ELSIF p_ix_status IS NULL THEN ${readFrom(' AND i.status = p_status')}
    ELSIF p_status IS NULL THEN ${readFrom(' AND i.ix_status = p_ix_status')}
    ELSE ${readFrom(' AND i.status = p_status AND i.ix_status = p_ix_status')}
    END IF;
    IF v_ids IS NOT NULL THEN ${readSummaries};
    END IF;
  END $body$;`
