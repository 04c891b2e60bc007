/**
 * What the API's role may do: call these, each of which takes the customer. They run with their owner's rights, blind to
 * what the caller's search path holds, and are planned once a connection.
 *
 * A plan serves customers of every size, so whole tables are never read and indexes give the order: one customer who
 * holds most of a table must not make the planner read all of it for everybody.
 */
import { dayLength, everyDay, spans } from '../counting.ts'

const attributes = `
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off`

const page = 'OUT total bigint, OUT page bigint, OUT summaries text'
const filters = `p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
  p_from bigint, p_before bigint`
const given = 'p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before'

const ofDays = `
      i.customer_id = p_customer_id
      AND i.issued_at >= coalesce(p_from, ${Number.MIN_SAFE_INTEGER})
      AND i.issued_at < coalesce(p_before, ${Number.MAX_SAFE_INTEGER})`

/** The rows that match the filters, but for a search. */
const matching = `${ofDays}
      AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)`

const inOrder = 'ORDER BY i.issued_at DESC, i.id DESC'

const clampPage = 'page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size))'

/** The summaries of invoices by their ids, in the order of these. */
const readSummaries = `
    SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO summaries FROM unnest(v_ids) k (id)`

/** Counts the rows, unless the customer has counters. */
const listInvoices = `
  CREATE FUNCTION fatura.list_invoices(${filters}, ${page}, OUT version bigint, OUT synced_at bigint)
  ${attributes} AS $body$
  DECLARE
    v_counted boolean;
    v_filtered boolean := num_nonnulls(p_status, p_ix_status, p_from, p_before) > 0;
  BEGIN
    SELECT c.total, c.version, c.counted, f.synced_at INTO total, version, v_counted, synced_at
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
    total := coalesce(total, 0);
    IF v_counted AND (v_filtered OR p_page > 1) THEN
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
 * The first invoices of a state before a moment, and not before another. ix_status is one value there; it is named in the
 * order because the planner does not see that a column which is null throughout leaves the rest of an index in order.
 */
function firstOfState(ixStatus: string): string {
  return `
            (SELECT i.issued_at, i.id FROM fatura.invoices i
             WHERE i.customer_id = p_customer_id AND i.status = k.status AND ${ixStatus}
               AND i.issued_at >= v_from AND i.issued_at < v_before
             ORDER BY i.ix_status, i.issued_at DESC, i.id DESC LIMIT v_wanted)`
}

/**
 * The counters give the total and the day in which the page begins; only within that day are invoices skipped. What then
 * follows is read from each state's own order, so that a rare state is not searched for among the others.
 *
 * It has no rights and settings of its own: it is called by `list_invoices`, and works with that one's.
 */
const listCounted = `
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
    v_from bigint := v_first::bigint * ${dayLength};
    v_before bigint := v_end::bigint * ${dayLength};
    v_left bigint; v_start integer; v_n bigint;
    v_wanted bigint := p_page_size;
    v_ids text[] := '{}';
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
    IF v_status = '' AND v_ix = '' THEN
      v_ids := ARRAY(
        SELECT i.id FROM fatura.invoices i
        WHERE i.customer_id = p_customer_id AND i.issued_at >= v_from AND i.issued_at < v_before
        ${inOrder} LIMIT v_wanted OFFSET v_left);
    ELSE
      IF v_left > 0 THEN
        v_ids := ARRAY(
          SELECT i.id FROM fatura.invoices i
          WHERE i.customer_id = p_customer_id AND i.issued_at >= v_before - ${dayLength} AND i.issued_at < v_before
            AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
          ${inOrder} LIMIT v_wanted OFFSET v_left);
        v_before := v_before - ${dayLength};
        v_wanted := v_wanted - cardinality(v_ids);
      END IF;
      IF v_wanted > 0 THEN
        v_ids := v_ids || ARRAY(
          SELECT r.id FROM fatura.counts k CROSS JOIN LATERAL (
            ${firstOfState("i.ix_status = substr(k.ix, 2) AND k.ix <> '-'")}
            UNION ALL
            ${firstOfState("i.ix_status IS NULL AND k.ix = '-'")}
          ) r
          WHERE k.customer_id = p_customer_id AND k.span = ${spans.all} AND k.status <> '' AND k.ix <> ''
            AND (v_status = '' OR k.status = v_status) AND (v_ix = '' OR k.ix = v_ix)
          ORDER BY r.issued_at DESC, r.id DESC LIMIT v_wanted);
      END IF;
    END IF;
    ${readSummaries};
  END $body$;`

/** So many are found in one pass, which also counts them; more than that are counted first. */
const foundAtOnce = 1_000

/**
 * Finds by one pass over the narrow index, which holds the invoices' own texts. The first ones are taken down on the way;
 * if there are more, all are counted, and a page further on is skipped to from the nearer end.
 */
function findPage(from: string, condition: string, filtered = matching): string {
  const found = `FROM ${from} WHERE ${filtered}
          AND ${condition}`
  const skipTo = (order: string, limit: string, offset: string) => `
          SELECT i.id, i.issued_at ${found}
          ${order} LIMIT ${limit} OFFSET ${offset}`
  return `
      v_ids := ARRAY(SELECT i.id ${found} ${inOrder} LIMIT ${foundAtOnce + 1});
      total := cardinality(v_ids);
      IF total > ${foundAtOnce} THEN
        SELECT count(*) INTO total ${found};
      END IF;
      ${clampPage};
      v_left := (page - 1) * p_page_size;
      IF v_left + p_page_size <= ${foundAtOnce} OR total <= ${foundAtOnce} THEN
        v_ids := v_ids[v_left + 1 : v_left + p_page_size];
      ELSIF v_left < total / 2 THEN
        v_ids := ARRAY(SELECT r.id FROM (${skipTo(inOrder, 'p_page_size', 'v_left')}) r);
      ELSE
        v_ids := ARRAY(SELECT r.id FROM (${skipTo(
          'ORDER BY i.issued_at, i.id',
          'least(p_page_size, total - v_left)',
          'greatest(0, total - v_left - p_page_size)',
        )}) r ORDER BY r.issued_at DESC, r.id DESC);
      END IF;`
}

const searchInvoices = `
  CREATE FUNCTION fatura.search_invoices(${filters}, p_words text[], p_alternatives text[],
    ${page}, OUT version bigint, OUT synced_at bigint)
  ${attributes} AS $body$
  DECLARE
    v_parties bigint[]; v_lefts text[]; v_words text[]; v_word bytea; v_second bytea; v_ids text[]; v_left bigint;
  BEGIN
    SELECT array_agg(q.party_id), array_agg(q.words) INTO v_parties, v_lefts FROM (
      SELECT y.party_id, (
        SELECT coalesce(string_agg(w.word, E'\\n' ORDER BY length(w.word) DESC, w.word), '')
        FROM unnest(p_words, p_alternatives) w (word, alternative)
        WHERE strpos(y.text, w.word) = 0 AND (w.alternative IS NULL OR strpos(y.text, w.alternative) = 0)
      ) AS words
      FROM fatura.parties y WHERE y.customer_id = p_customer_id) q;
    IF '' = ALL (v_lefts) THEN
      SELECT l.total, l.page, l.summaries, l.version, l.synced_at INTO total, page, summaries, version, synced_at
      FROM fatura.list_invoices(${given}) l;
      RETURN;
    END IF;
    SELECT c.version, f.synced_at INTO version, synced_at
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
    IF v_lefts[1] = ALL (v_lefts) THEN
      v_words := string_to_array(v_lefts[1], E'\\n');
      v_word := convert_to(v_words[1], 'UTF8');
      v_second := convert_to(coalesce(v_words[2], ''), 'UTF8');
      IF cardinality(v_words) = 1 AND num_nonnulls(p_status, p_ix_status) = 0 THEN ${findPage(
        'fatura.invoices i',
        'position(v_word IN i.own_text) > 0',
        ofDays,
      )}
      ELSE ${findPage(
        'fatura.invoices i',
        `position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND (cardinality(v_words) < 3
            OR NOT EXISTS (SELECT FROM unnest(v_words) w (word) WHERE position(convert_to(w.word, 'UTF8') IN i.own_text) = 0))`,
      )}
      END IF;
    ELSE ${findPage(
      `fatura.invoices i JOIN (
          SELECT u.party_id, u.words, convert_to(split_part(u.words, E'\\n', 1), 'UTF8') AS word,
            convert_to(split_part(u.words, E'\\n', 2), 'UTF8') AS second,
            split_part(u.words, E'\\n', 3) <> '' AS has_more
          FROM unnest(v_parties, v_lefts) u (party_id, words) OFFSET 0) y ON y.party_id = i.party_id`,
      `position(y.word IN i.own_text) > 0 AND position(y.second IN i.own_text) > 0 AND (NOT y.has_more OR NOT EXISTS (
            SELECT FROM string_to_table(y.words, E'\\n') w (word) WHERE position(convert_to(w.word, 'UTF8') IN i.own_text) = 0))`,
    )}
    END IF;
    ${readSummaries};
  END $body$;`

const others = `
  CREATE FUNCTION fatura.read_snapshot(p_customer_id text, OUT version bigint, OUT synced_at bigint)
  ${attributes} AS $body$
  BEGIN
    SELECT c.version, f.synced_at INTO version, synced_at
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
  END $body$;

  CREATE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
  RETURNS TABLE (summary text, lines text, synced_at bigint) ${attributes} AS $body$
  BEGIN RETURN QUERY
    SELECT i.summary, l.lines, (SELECT f.synced_at FROM fatura.freshness f)
    FROM fatura.invoices i
    LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
    WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
  END $body$;

  CREATE FUNCTION fatura.find_token(p_id text) RETURNS SETOF fatura.tokens ${attributes} AS $body$
  BEGIN RETURN QUERY SELECT * FROM fatura.tokens t WHERE t.id = p_id; END $body$;

  CREATE FUNCTION fatura.schema_version() RETURNS integer ${attributes} AS $body$
  BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;`

export const functions = [listCounted, listInvoices, searchInvoices, others].join('\n')

/** The functions that read what belongs to a customer. */
export const customerFunctions = [
  'fatura.list_invoices',
  'fatura.search_invoices',
  'fatura.read_snapshot',
  'fatura.find_invoice',
]
