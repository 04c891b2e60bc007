-- PostgreSQL functions. They are created again whenever this text changes. `npm run functions` writes the passages between two marks, such
-- as parameters and end, from the filters and constants in src/store/sql.
--
-- The API's role may call only the first functions of this file. Each function that reads invoices takes the customer. The functions run
-- with their owner's rights, and the caller's search path has no effect. One plan serves customers of every size. Whole tables are
-- therefore never read, and indexes give the order. Otherwise a customer who owns most of a table would make the planner read all of it for
-- everybody.
--
-- Functions that read rows by their keys read one table per statement. Citus keeps the plan of such a statement, but plans a join again at
-- every call. The functions are STABLE, so all of their statements see the moment of the call. Each setting of a function costs 1 to 2 µs
-- per call.

-- Reads the freshness. `place` is the end of the feed, which only rises within a life of the store. A standby may be behind.
CREATE OR REPLACE FUNCTION fatura.read_freshness(OUT synced_at bigint, OUT life text, OUT place bigint, OUT is_standby boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT f.synced_at, f.life INTO synced_at, life FROM fatura.freshness f WHERE f.only_one;
  SELECT f.last_seq, pg_is_in_recovery() INTO place, is_standby FROM fatura.feed f WHERE f.only_one;
END $body$;

CREATE OR REPLACE FUNCTION fatura.read_version(p_customer_id text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT c.version FROM fatura.customers c WHERE c.customer_id = p_customer_id); END $body$;

CREATE OR REPLACE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
RETURNS TABLE (summary text, lines text, document text, payment text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT i.summary, i.document, i.payment INTO summary, document, payment FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT l.lines INTO lines FROM fatura.invoice_lines l
  WHERE l.customer_id = p_customer_id AND l.invoice_id = p_invoice_id;
  RETURN NEXT;
END $body$;

-- No function returns a table's own row type. When Citus distributes a table, it puts another table in its place.
CREATE OR REPLACE FUNCTION fatura.read_token(p_id text)
RETURNS TABLE (id text, hash text, every_customer boolean, expires_at bigint, revoked_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN QUERY SELECT t.id, t.hash, t.customers IS NULL, t.expires_at, t.revoked_at
  FROM fatura.tokens t WHERE t.id = p_id;
END $body$;

CREATE OR REPLACE FUNCTION fatura.read_key(p_id text)
RETURNS TABLE (kid text, x text, every_customer boolean, revoked_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN QUERY SELECT k.kid, k.x, k.customers IS NULL, k.revoked_at FROM fatura.keys k WHERE k.kid = p_id;
END $body$;

CREATE OR REPLACE FUNCTION fatura.covers_customer(p_id text, p_customer_id text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN EXISTS (SELECT FROM fatura.scopes s WHERE s.id = p_id AND s.customer_id = p_customer_id);
END $body$;

-- A customer's version and the changes after a version. The first row has no change. It has the customer's version and the store's life,
-- and tells whether this server is a standby.
CREATE OR REPLACE FUNCTION fatura.customer_changes(p_customer_id text, p_after bigint, p_limit integer)
RETURNS TABLE (version bigint, previous bigint, invoice_id text, kind text, at bigint, life text, is_standby boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off SET jit = off AS $body$
BEGIN
  SELECT f.life, pg_is_in_recovery() INTO life, is_standby FROM fatura.freshness f WHERE f.only_one;
  SELECT c.version INTO version FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  RETURN NEXT;
  RETURN QUERY SELECT d.version, d.previous, d.invoice_id, d.kind, d.at, NULL::text, NULL::boolean FROM fatura.changes d
  WHERE d.customer_id = p_customer_id AND d.version > p_after ORDER BY d.version LIMIT p_limit;
END $body$;

-- Commits in the feed of all customers after a position. The first row has the state of the feed instead of a commit.
CREATE OR REPLACE FUNCTION fatura.read_commits(p_after bigint, p_limit integer)
RETURNS TABLE (seq bigint, commit_id bigint, n integer, life text, is_standby boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off SET jit = off AS $body$
BEGIN
  SELECT f.life INTO life FROM fatura.freshness f WHERE f.only_one;
  SELECT f.last_seq, f.pruned_seq, 0, pg_is_in_recovery() INTO seq, commit_id, n, is_standby FROM fatura.feed f WHERE f.only_one;
  RETURN NEXT;
  RETURN QUERY SELECT t.seq, t.commit_id, t.n, NULL::text, NULL::boolean FROM fatura.commits t
  WHERE t.seq > p_after ORDER BY t.seq LIMIT p_limit;
END $body$;

-- Changes of the commits in `p_commits`. Of each commit, the changes behind its position in `p_starts` are returned, up to its position in
-- `p_ends`. The changes may be of any customer. The function is therefore only for callers who may read all customers.
CREATE OR REPLACE FUNCTION fatura.commit_changes(p_commits bigint[], p_starts integer[], p_ends integer[])
RETURNS TABLE (commit_id bigint, place integer, customer_id text, invoice_id text, kind text, version bigint, at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off SET jit = off AS $body$
BEGIN
  RETURN QUERY SELECT c.commit_id, c.place, c.customer_id, c.invoice_id, c.kind, c.version, c.at
  FROM unnest(p_commits, p_starts, p_ends) AS g (commit_id, after, until)
  JOIN fatura.changes c ON c.commit_id = g.commit_id AND c.place > g.after AND c.place <= g.until;
END $body$;

CREATE OR REPLACE FUNCTION fatura.schema_version() RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;

-- Hashes of the migrations that made the schema, beginning with version 1, and the hash of the functions.
CREATE OR REPLACE FUNCTION fatura.schema_state(OUT hashes text[], OUT functions text, OUT is_rewriting boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT array_agg(m.sha256 ORDER BY m.version) FILTER (WHERE m.version > 0),
    min(m.sha256) FILTER (WHERE m.version = 0), bool_or(m.rewriting IS NOT NULL)
  INTO hashes, functions, is_rewriting FROM fatura.migrations m WHERE m.version >= 0;
END $body$;

-- A page of a customer with counters. The counters give the total and the months of the page. Only invoices of these months are skipped one
-- by one. list_invoices calls this function, so the rights and settings of list_invoices apply here.
CREATE OR REPLACE FUNCTION fatura.list_counted(p_customer_id text, p_page bigint, p_page_size bigint, p_expand text[],
  /*parameters*/ p_status text, p_ix_status text, p_from bigint, p_before bigint /*end*/,
  OUT total bigint, OUT page bigint, OUT summaries text)
LANGUAGE plpgsql STABLE AS $body$
DECLARE
  v_froms bigint[]; v_befores bigint[]; v_ns bigint[]; v_skips bigint[]; v_skip bigint; v_n bigint; v_ids text[];
BEGIN
  SELECT array_agg(extract(epoch FROM m.start)::bigint * 1000),
    array_agg(extract(epoch FROM m.start + interval '1 month')::bigint * 1000), array_agg(m.n)
  INTO v_froms, v_befores, v_ns FROM (
    SELECT (k.month || '-01')::timestamp AS start, sum(k.n) AS n FROM fatura.counters k
    WHERE k.customer_id = p_customer_id AND
      /*counters*/ (p_status IS NULL OR k.status = p_status) AND (p_ix_status IS NULL OR k.ix = '=' || p_ix_status) AND k.month >= coalesce(to_char(to_timestamp(p_from / 1000.0::float8) AT TIME ZONE 'UTC', 'YYYY-MM'), '') AND k.month <= coalesce(to_char(to_timestamp((p_before - 1) / 1000.0::float8) AT TIME ZONE 'UTC', 'YYYY-MM'), '~') /*end*/
    GROUP BY k.month ORDER BY k.month DESC) m;
  -- When the period contains only a part of a month, the matching rows of this month are counted.
  FOR v_at IN 1 .. coalesce(cardinality(v_ns), 0) LOOP
    IF v_froms[v_at] < p_from OR v_befores[v_at] > p_before THEN
      v_froms[v_at] := greatest(v_froms[v_at], p_from);
      v_befores[v_at] := least(v_befores[v_at], p_before);
      -- The count goes into a variable of its own, because Citus cannot pass on an assignment to an array element.
      SELECT count(*) INTO v_n FROM fatura.invoices i
      WHERE i.customer_id = p_customer_id AND i.issued_at >= v_froms[v_at] AND i.issued_at < v_befores[v_at] AND
        /*matchingInMonth*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) /*end*/;
      v_ns[v_at] := v_n;
    END IF;
  END LOOP;
  total := coalesce((SELECT sum(c.n) FROM unnest(v_ns) AS c (n)), 0);
  page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
  IF total = 0 THEN
    RETURN;
  END IF;
  v_skip := (page - 1) * p_page_size;
  -- Selects the months that hold a part of the page, the latest first. Also selects how many invoices to skip in each month.
  SELECT array_agg(m.start ORDER BY m.place), array_agg(m.stop ORDER BY m.place),
    array_agg(greatest(v_skip - m.earlier, 0) ORDER BY m.place)
  INTO v_froms, v_befores, v_skips FROM (
    SELECT c.start, c.stop, c.n, c.place, sum(c.n) OVER (ORDER BY c.place) - c.n AS earlier
    FROM unnest(v_froms, v_befores, v_ns) WITH ORDINALITY AS c (start, stop, n, place)) m
  WHERE m.earlier < v_skip + p_page_size AND m.earlier + m.n > v_skip;
  v_ids := ARRAY(
    SELECT r.id FROM unnest(v_froms, v_befores, v_skips) AS m (start, stop, skip)
    CROSS JOIN LATERAL (
      SELECT i.id FROM fatura.invoices i
      WHERE i.customer_id = p_customer_id AND i.issued_at >= m.start AND i.issued_at < m.stop AND
        /*matchingInMonth*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) /*end*/
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET m.skip) r
    LIMIT p_page_size);
  IF cardinality(v_ids) <> least(p_page_size, total - v_skip) THEN
    RAISE 'The counters of a customer do not add up. Run: fatura doctor --repair';
  END IF;
  IF p_expand IS NULL THEN
    SELECT string_agg((
      SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO summaries FROM unnest(v_ids) k (id);
  ELSE
    SELECT string_agg((
      SELECT /*lines*/ i.summary || E'\n' || i.expanded_document || E'\n' || i.expanded_payment || E'\n' || CASE WHEN 'taxes' = ANY (p_expand) THEN coalesce(nullif(CASE WHEN i.document::json ->> 'currency' = i.currency THEN (i.document::json -> 'taxes')::text END, 'null'), (i.payment::json -> 'taxes')::text, 'null') ELSE '' END /*end*/ FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), E'\n')
    INTO summaries FROM unnest(v_ids) k (id);
  END IF;
END $body$;

-- A page of the list as one text. The first line has total, version and page number. The summaries follow, joined by commas. With p_expand,
-- each summary is followed by lines with its expansions. A result with columns would cost 6 µs more, where the whole call takes 40 µs.
-- Counters are used when they avoid a scan, for the total of a filtered list or for the rows before a deep page.
CREATE OR REPLACE FUNCTION fatura.list_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_expand text[],
  /*parameters*/ p_status text, p_ix_status text, p_from bigint, p_before bigint /*end*/)
RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_total bigint; v_version bigint; v_counted boolean; v_page bigint; v_summaries text;
  v_filtered boolean := /*filtered*/ num_nonnulls(p_status, p_ix_status, p_from, p_before) > 0 /*end*/;
BEGIN
  SELECT c.total, c.version, c.counted INTO v_total, v_version, v_counted
  FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  IF NOT FOUND THEN
    RETURN E'0 0 1\n';
  END IF;
  IF v_counted AND /*countable*/ true /*end*/ AND (v_filtered OR (p_page - 1) * p_page_size > /*counted*/ 2000 /*end*/) THEN
    SELECT l.total, l.page, l.summaries INTO v_total, v_page, v_summaries
    FROM fatura.list_counted(p_customer_id, p_page, p_page_size, p_expand, /*values*/ p_status, p_ix_status, p_from, p_before /*end*/) l;
    RETURN v_total || ' ' || v_version || ' ' || v_page || E'\n' || coalesce(v_summaries, '');
  END IF;
  IF v_filtered THEN
    SELECT count(*) INTO v_total FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND
      /*matching*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991) /*end*/;
  END IF;
  v_page := greatest(1, least(p_page, (v_total + p_page_size - 1) / p_page_size));
  IF p_expand IS NULL THEN
    SELECT string_agg(i.summary, ',') INTO v_summaries FROM (
      SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND
        /*matching*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991) /*end*/
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (v_page - 1) * p_page_size) i;
  ELSE
    SELECT string_agg(/*lines*/ i.summary || E'\n' || i.expanded_document || E'\n' || i.expanded_payment || E'\n' || CASE WHEN 'taxes' = ANY (p_expand) THEN coalesce(nullif(CASE WHEN i.document::json ->> 'currency' = i.currency THEN (i.document::json -> 'taxes')::text END, 'null'), (i.payment::json -> 'taxes')::text, 'null') ELSE '' END /*end*/, E'\n') INTO v_summaries FROM (
      SELECT i.* FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND
        /*matching*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991) /*end*/
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (v_page - 1) * p_page_size) i;
  END IF;
  RETURN v_total || ' ' || v_version || ' ' || v_page || E'\n' || coalesce(v_summaries, '');
END $body$;

-- A search in one pass over the index with the folded texts. Each word has up to two parts and two beginnings of IDs. An absent one is
-- null. An invoice matches when for each word its text contains a part, or its IDs contain a beginning. The words are put into a table
-- first, because unnest would run again for each row. A text that is too long for the index is read from its row. Returns null for a
-- customer with more than p_at_most invoices.
CREATE OR REPLACE FUNCTION fatura.search_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_expand text[],
  /*parameters*/ p_status text, p_ix_status text, p_from bigint, p_before bigint /*end*/,
  p_parts bytea[], p_others bytea[], p_ids bytea[], p_other_ids bytea[], p_at_most bigint)
RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE v_version bigint; v_ids text[]; v_total bigint; v_page bigint; v_summaries text;
BEGIN
  SELECT c.total, c.version INTO v_total, v_version FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  IF v_total > p_at_most THEN
    RETURN NULL;
  END IF;
  v_ids := ARRAY(
    WITH words AS MATERIALIZED (
      SELECT * FROM unnest(p_parts, p_others, p_ids, p_other_ids) AS given (part, other, id, other_id))
    SELECT r.id FROM (
      SELECT i.id, i.issued_at, i.search_ids AS ids, coalesce(i.search_text, (
        SELECT o.long_text FROM fatura.invoices o WHERE o.customer_id = p_customer_id AND o.id = i.id)) AS text
      FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND
        /*matching*/ (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991) /*end*/) r
    WHERE NOT EXISTS (
      SELECT FROM words w
      WHERE (position(w.part IN r.text) > 0 OR position(w.other IN r.text) > 0
        OR position(w.id IN r.ids) > 0 OR position(w.other_id IN r.ids) > 0) IS NOT TRUE)
    ORDER BY r.issued_at DESC, r.id DESC);
  v_total := cardinality(v_ids);
  v_page := greatest(1, least(p_page, (v_total + p_page_size - 1) / p_page_size));
  IF p_expand IS NULL THEN
    SELECT string_agg((
      SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
    INTO v_summaries FROM unnest(v_ids[(v_page - 1) * p_page_size + 1 : v_page * p_page_size]) k (id);
  ELSE
    SELECT string_agg((
      SELECT /*lines*/ i.summary || E'\n' || i.expanded_document || E'\n' || i.expanded_payment || E'\n' || CASE WHEN 'taxes' = ANY (p_expand) THEN coalesce(nullif(CASE WHEN i.document::json ->> 'currency' = i.currency THEN (i.document::json -> 'taxes')::text END, 'null'), (i.payment::json -> 'taxes')::text, 'null') ELSE '' END /*end*/ FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), E'\n')
    INTO v_summaries FROM unnest(v_ids[(v_page - 1) * p_page_size + 1 : v_page * p_page_size]) k (id);
  END IF;
  RETURN v_total || ' ' || coalesce(v_version, 0) || ' ' || v_page || E'\n' || coalesce(v_summaries, '');
END $body$;

-- Sums by currency, status and month. They come from the counters, or from the rows of a customer without counters. Sums are texts, because
-- a reader of JSON rounds numbers above 2^53. read_open has the same statement for open invoices. On Citus, a function that both call would
-- have to be distributed and planned too.
CREATE OR REPLACE FUNCTION fatura.read_sums(p_customer_id text, OUT sums text, OUT credited text, OUT open_sums text, OUT version bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET jit = off AS $body$
DECLARE v_counted boolean;
BEGIN
  SELECT c.version, c.counted INTO version, v_counted FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  IF v_counted THEN
    SELECT json_agg(json_build_array(r.month, r.status, r.currency, r.n, r.cents::text)) INTO sums FROM (
      SELECT k.month, k.status, k.currency, sum(k.n) AS n, sum(k.total_cents) AS cents
      FROM fatura.counters k
      WHERE k.customer_id = p_customer_id
      GROUP BY k.month, k.status, k.currency) r;
  ELSE
    SELECT json_agg(json_build_array(r.month, r.status, r.currency, r.n, r.cents::text)) INTO sums FROM (
      SELECT to_char(to_timestamp(i.issued_at / 1000.0::float8) AT TIME ZONE 'UTC', 'YYYY-MM') AS month,
        i.status, i.currency, count(*) AS n, sum(i.total_cents) AS cents
      FROM fatura.invoices i
      WHERE i.customer_id = p_customer_id
      GROUP BY 1, i.status, i.currency) r;
  END IF;
  SELECT json_agg(json_build_array(r.currency, r.cents::text)) INTO credited FROM (
    SELECT i.currency, sum(i.credited_cents) AS cents
    FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open' AND i.credited_cents <> 0
    GROUP BY i.currency) r;
  SELECT json_agg(json_build_array(r.currency, r.due_date, r.n, r.to_pay_n, r.to_pay_cents::text, r.in_favour_n, r.in_favour_cents::text))
  INTO open_sums FROM (
    SELECT i.currency, i.due_date, count(*) AS n,
      count(*) FILTER (WHERE i.to_pay_cents > 0) AS to_pay_n, sum(i.to_pay_cents) AS to_pay_cents,
      count(*) FILTER (WHERE i.in_favour_cents > 0) AS in_favour_n, sum(i.in_favour_cents) AS in_favour_cents
    FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open'
    GROUP BY i.due_date, i.currency) r;
END $body$;

-- Open invoices: their sums by currency and due day, and the first invoices. Those due before p_day come first, the earliest due day before
-- the others. Invoices without a due day follow, and then the rest. read_sums has the same statement for the sums, and says why.
CREATE OR REPLACE FUNCTION fatura.read_open(p_customer_id text, p_day text, OUT sums text, OUT invoices text, OUT version bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET jit = off AS $body$
DECLARE v_ids text[];
BEGIN
  SELECT c.version INTO version FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  SELECT json_agg(json_build_array(r.currency, r.due_date, r.n, r.to_pay_n, r.to_pay_cents::text, r.in_favour_n, r.in_favour_cents::text))
  INTO sums FROM (
    SELECT i.currency, i.due_date, count(*) AS n,
      count(*) FILTER (WHERE i.to_pay_cents > 0) AS to_pay_n, sum(i.to_pay_cents) AS to_pay_cents,
      count(*) FILTER (WHERE i.in_favour_cents > 0) AS in_favour_n, sum(i.in_favour_cents) AS in_favour_cents
    FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open'
    GROUP BY i.due_date, i.currency) r;
  v_ids := ARRAY(SELECT i.id FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open' AND i.due_date < p_day
    ORDER BY i.due_date, i.currency, i.id LIMIT /*open*/ 100 /*end*/);
  v_ids := v_ids || ARRAY(SELECT i.id FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open' AND i.due_date IS NULL
    ORDER BY i.currency, i.id LIMIT /*open*/ 100 /*end*/ - cardinality(v_ids));
  v_ids := v_ids || ARRAY(SELECT i.id FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.status = 'open' AND i.due_date >= p_day
    ORDER BY i.due_date, i.currency, i.id LIMIT /*open*/ 100 /*end*/ - cardinality(v_ids));
  SELECT json_agg((SELECT json_build_array(i.summary, i.payment, i.document) FROM fatura.invoices i
    WHERE i.customer_id = p_customer_id AND i.id = k.id) ORDER BY k.place)
  INTO invoices FROM unnest(v_ids) WITH ORDINALITY k (id, place);
END $body$;

-- A page of a customer's account: sums by currency before the period and within it, the entries of the page, and the sums of the period's
-- entries before the page.
CREATE OR REPLACE FUNCTION fatura.read_account(p_customer_id text, p_from text, p_to text, p_page bigint, p_page_size bigint,
  OUT opening text, OUT period text, OUT earlier text, OUT entries text, OUT page bigint, OUT version bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET jit = off AS $body$
DECLARE v_total bigint; v_skip bigint;
BEGIN
  SELECT c.version INTO version FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  SELECT json_agg(json_build_array(r.currency, r.cents::text)) INTO opening FROM (
    SELECT e.currency, sum(e.cents) AS cents FROM fatura.account_entries e
    WHERE e.customer_id = p_customer_id AND e.day < p_from GROUP BY e.currency) r;
  SELECT json_agg(json_build_array(r.currency, r.n, r.debit::text, r.credit::text)), coalesce(sum(r.n), 0)
  INTO period, v_total FROM (
    SELECT e.currency, count(*) AS n, sum(greatest(e.cents, 0)) AS debit, sum(greatest(-e.cents, 0)) AS credit
    FROM fatura.account_entries e
    WHERE e.customer_id = p_customer_id AND e.day >= p_from AND e.day <= p_to GROUP BY e.currency) r;
  page := greatest(1, least(p_page, (v_total + p_page_size - 1) / p_page_size));
  v_skip := (page - 1) * p_page_size;
  SELECT json_agg(json_build_array(r.currency, r.cents::text)) INTO earlier FROM (
    SELECT s.currency, sum(s.cents) AS cents FROM (
      SELECT e.currency, e.cents FROM fatura.account_entries e
      WHERE e.customer_id = p_customer_id AND e.day >= p_from AND e.day <= p_to
      ORDER BY e.day, e.invoice_id, e.place LIMIT v_skip) s
    GROUP BY s.currency) r;
  SELECT json_agg(json_build_array(r.day, r.currency, r.cents, r.entry) ORDER BY r.day, r.invoice_id, r.place) INTO entries FROM (
    SELECT e.day, e.currency, e.cents, e.entry, e.invoice_id, e.place FROM fatura.account_entries e
    WHERE e.customer_id = p_customer_id AND e.day >= p_from AND e.day <= p_to
    ORDER BY e.day, e.invoice_id, e.place LIMIT p_page_size OFFSET v_skip) r;
END $body$;

-- Functions that writers call. They run with the caller's rights, and where the rows lie. On one server, a batch is one call. On Citus, a
-- batch is one call per shard, and the statements name the tables of this shard, so Citus has nothing to plan.

CREATE OR REPLACE FUNCTION fatura.tables_at(p_customer_id text, p_is_spread boolean, VARIADIC p_tables text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN
  IF NOT p_is_spread THEN
    RETURN ARRAY(SELECT 'fatura.' || t.name FROM unnest(p_tables) AS t (name));
  END IF;
  RETURN ARRAY(
    SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
    FROM (SELECT 'fatura.' || n.name AS name, n.place FROM unnest(p_tables) WITH ORDINALITY AS n (name, place)) t
    ORDER BY t.place);
END $body$;

-- Finds stored invoices by their keys. Each is [customer_id, id, summary, observed_stamp, answered_stamp, claim, document, payment]. A
-- deleted invoice has no summary.
CREATE OR REPLACE FUNCTION fatura.find_known(p_customer_id text, p_is_spread boolean, p_customers text[], p_ids text[])
RETURNS json LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_known json;
BEGIN
  EXECUTE format($sql$
    SELECT json_agg(json_build_array(g.customer_id, g.id, i.summary, coalesce(i.observed_stamp, t.observed_stamp),
      coalesce(i.answered_stamp, t.answered_stamp),
      CASE WHEN i.id IS NOT NULL THEN l.claim END, i.document, i.payment))
    FROM unnest($1, $2) AS g (customer_id, id)
    LEFT JOIN LATERAL (SELECT * FROM %1$s WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) i ON true
    LEFT JOIN LATERAL (SELECT * FROM %2$s WHERE customer_id = g.customer_id AND invoice_id = g.id OFFSET 0) l ON true
    LEFT JOIN LATERAL (SELECT * FROM %3$s WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) t ON true
    WHERE i.id IS NOT NULL OR t.id IS NOT NULL$sql$,
    VARIADIC fatura.tables_at(p_customer_id, p_is_spread, 'invoices', 'links', 'tombstones'))
  INTO v_known USING p_customers, p_ids;
  RETURN coalesce(v_known, '[]');
END $body$;

-- Writes totals and versions of customers, and their changes. `p_added` is the number of added invoices of each customer. Returns the
-- customers that have become large and have no counters.
CREATE OR REPLACE FUNCTION fatura.count_customers(p_customer_id text, p_is_spread boolean,
  p_customers text[], p_added bigint[], p_versions bigint[],
  given_customer_id text[], given_version bigint[], given_previous bigint[], given_invoice_id text[], given_kind text[],
  given_place integer[], p_commit bigint, p_now bigint)
RETURNS json LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_large json;
BEGIN
  EXECUTE format($sql$
    WITH saved AS (
      INSERT INTO %1$s AS stored (customer_id, version, total)
      SELECT changed.customer_id, changed.version, changed.added
      FROM unnest($1, $2, $3) AS changed (customer_id, added, version)
      ON CONFLICT (customer_id) DO UPDATE SET version = greatest(stored.version + 1, excluded.version),
        total = stored.total + excluded.total
      RETURNING stored.customer_id, stored.total, stored.counted)
    SELECT json_agg(customer_id) FROM saved WHERE NOT counted AND total > /*counted*/ 2000 /*end*/$sql$,
    VARIADIC fatura.tables_at(p_customer_id, p_is_spread, 'customers'))
  INTO v_large USING p_customers, p_added, p_versions;
  EXECUTE format($sql$
    INSERT INTO %1$s (customer_id, version, previous, invoice_id, kind, place, commit_id, at)
    SELECT g.*, $7, $8 FROM unnest($1, $2, $3, $4, $5, $6) AS g (customer_id, version, previous, invoice_id, kind, place)$sql$,
    VARIADIC fatura.tables_at(p_customer_id, p_is_spread, 'changes'))
  USING given_customer_id, given_version, given_previous, given_invoice_id, given_kind, given_place, p_commit, p_now;
  RETURN coalesce(v_large, '[]');
END $body$;
