CREATE TABLE fatura.pins (
  system    text COLLATE "C" PRIMARY KEY,
  account   text COLLATE "C" NOT NULL,
  pinned_at bigint NOT NULL
);

CREATE TABLE fatura.lease (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  holder   text COLLATE "C",
  epoch    bigint NOT NULL,
  beats    bigint NOT NULL
);
INSERT INTO fatura.lease (holder, epoch, beats) VALUES (NULL, 0, 0);

CREATE TABLE fatura.set_aside (
  system   text COLLATE "C" NOT NULL,
  kind     text COLLATE "C" NOT NULL,
  id       text COLLATE "C" NOT NULL,
  reason   text COLLATE "C" NOT NULL,
  first_at bigint NOT NULL,
  last_at  bigint NOT NULL,
  tries    integer NOT NULL,
  PRIMARY KEY (system, kind, id)
);

-- What is uncollectible may still be paid.
DROP INDEX fatura.invoices_unsettled;
CREATE INDEX invoices_unsettled ON fatura.invoices (customer_id, id)
  WHERE status IN ('draft', 'open', 'uncollectible');

-- Until when the records follow their sources: as of the moment at which the last round over events began, and at which
-- the last round of each kind over the documents did, once everything was read to its end. What is looked at again in
-- case something was missed does not count. An import counts only where nothing else brings records.
DROP VIEW fatura.current_freshness;
CREATE VIEW fatura.current_freshness AS
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN name LIKE '%:events' OR name LIKE 'ix:%' THEN succeeded_at END), min(succeeded_at))
    END AS synced_at
  FROM fatura.streams
  WHERE name NOT LIKE '%:unsettled' AND name NOT LIKE '%:relist'
    AND (name <> 'import' OR NOT EXISTS (SELECT 1 FROM fatura.streams WHERE name <> 'import'));

-- In which days a word can be: a part of each one's sign. They are in the order in which they are looked through.
CREATE TABLE fatura.search_signs (
  customer_id text COLLATE "C" NOT NULL,
  part        integer NOT NULL,
  first       integer NOT NULL,
  bits        bytea NOT NULL,
  PRIMARY KEY (customer_id, part, first)
);
ALTER TABLE fatura.search_signs ALTER bits SET STORAGE EXTERNAL;
-- It takes the words' groups of letters, too.
DROP FUNCTION fatura.search_invoices(text, bigint, bigint, text, text, bigint, bigint, text[], text[]);

-- By it, the last invoice of a party is known for it.
CREATE INDEX invoices_by_party ON fatura.invoices (customer_id, party_id);

-- Where most customers have one invoice, the planner would expect one of every customer, and take any index that begins
-- with the customer to find an invoice: at a customer of a million, it would read a million. So it expects a hundred.
-- Citus does not pass this on to its shards, and plans for each customer.
SET LOCAL citus.enable_ddl_propagation = off;
ALTER TABLE fatura.invoices ALTER customer_id SET (n_distinct = -0.01);
SET LOCAL citus.enable_ddl_propagation = on;

-- A reference may be of any length, and is only ever looked for as a whole.
DROP INDEX fatura.documents_by_reference;
CREATE INDEX documents_by_reference ON fatura.documents USING hash (reference);

-- Functions, written here by npm run functions.
CREATE OR REPLACE FUNCTION fatura.first_page(p_customer_id text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_page text;
BEGIN
  SELECT coalesce(c.total, 0) || ' ' || coalesce(c.version, 0) || ' ' || coalesce(f.synced_at::text, '') || E'\n'
    || coalesce(c.head, '') INTO v_page
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id WHERE f.only_one;
  RETURN v_page;
END $body$;

CREATE OR REPLACE FUNCTION fatura.read_snapshot(p_customer_id text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT c.version, f.synced_at INTO version, synced_at FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id WHERE f.only_one;
END $body$;

CREATE OR REPLACE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
RETURNS TABLE (summary text, lines text, synced_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN QUERY
  SELECT i.summary, l.lines, (SELECT f.synced_at FROM fatura.freshness f WHERE f.only_one)
  FROM fatura.invoices i
  LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
  WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
END $body$;

CREATE OR REPLACE FUNCTION fatura.list_counted(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text, p_from bigint, p_before bigint, OUT total bigint, OUT page bigint, OUT summaries text) LANGUAGE plpgsql STABLE AS $body$
DECLARE
  v_first integer := coalesce(p_from / 86400000, -1073741824);
  v_end integer := coalesce(p_before / 86400000, 1073741824);
  v_whole_from integer := (v_first + 31) & -32;
  v_whole_end integer := v_end & -32;
  v_dated boolean := num_nonnulls(p_from, p_before) > 0;
  v_status text := coalesce(p_status, '');
  v_ix text := coalesce('=' || p_ix_status, '');
  v_starts integer[]; v_spans integer[]; v_ns bigint[];
  v_before bigint := v_end::bigint * 86400000;
  v_left bigint; v_wanted bigint; v_start integer; v_n bigint; v_ids text[];
BEGIN
  IF NOT v_dated THEN
    SELECT k.n INTO total FROM fatura.counts k
    WHERE k.customer_id = p_customer_id AND k.span = 0 AND k.status = v_status AND k.ix = v_ix AND k.start = 0;
  END IF;
  IF v_dated OR p_page > 1 THEN
    IF v_whole_from >= v_whole_end THEN
      v_whole_from := v_first;
      v_whole_end := v_first;
    END IF;
    SELECT array_agg(q.start), array_agg(q.span), array_agg(q.n), sum(q.n) INTO v_starts, v_spans, v_ns, total FROM (

      SELECT k.start, k.span, k.n FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = 1 AND k.status = v_status AND k.ix = v_ix
        AND k.start >= v_whole_end AND k.start < v_end
      UNION ALL
      SELECT k.start, k.span, k.n FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = 32 AND k.status = v_status AND k.ix = v_ix
        AND k.start >= v_whole_from AND k.start < v_whole_end
      UNION ALL
      SELECT k.start, k.span, k.n FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = 1 AND k.status = v_status AND k.ix = v_ix
        AND k.start >= v_first AND k.start < v_whole_from
      ORDER BY start DESC) q;
  END IF;
  total := coalesce(total, 0);
  page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
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
    IF v_spans[array_position(v_starts, v_start)] = 32 THEN
      FOR v_start, v_n IN SELECT q.start, q.n FROM (

      SELECT k.start, k.span, k.n FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = 1 AND k.status = v_status AND k.ix = v_ix
        AND k.start >= v_start AND k.start < v_start + 32) q ORDER BY q.start DESC
      LOOP
        EXIT WHEN v_left < v_n;
        v_left := v_left - v_n;
        v_start := NULL;
      END LOOP;
    END IF;
    IF v_start IS NULL THEN
      RAISE 'The counters of a customer do not add up. Run: fatura doctor --repair';
    END IF;
    v_before := (v_start + 1)::bigint * 86400000;
  END IF;
  IF p_status IS NULL AND p_ix_status IS NULL THEN
    IF v_left = 0 THEN
      SELECT string_agg(r.summary, ',') INTO summaries FROM (SELECT i.summary
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted) r;
    ELSE
      v_ids := ARRAY(SELECT i.id
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted OFFSET v_left);
    END IF;
  ELSIF p_ix_status IS NULL THEN
    IF v_left = 0 THEN
      SELECT string_agg(r.summary, ',') INTO summaries FROM (SELECT i.summary
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.status = p_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted) r;
    ELSE
      v_ids := ARRAY(SELECT i.id
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.status = p_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted OFFSET v_left);
    END IF;
  ELSIF p_status IS NULL THEN
    IF v_left = 0 THEN
      SELECT string_agg(r.summary, ',') INTO summaries FROM (SELECT i.summary
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.ix_status = p_ix_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted) r;
    ELSE
      v_ids := ARRAY(SELECT i.id
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.ix_status = p_ix_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted OFFSET v_left);
    END IF;
  ELSE
    IF v_left = 0 THEN
      SELECT string_agg(r.summary, ',') INTO summaries FROM (SELECT i.summary
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.status = p_status AND i.ix_status = p_ix_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted) r;
    ELSE
      v_ids := ARRAY(SELECT i.id
        FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.issued_at < v_before AND i.status = p_status AND i.ix_status = p_ix_status
        ORDER BY i.issued_at DESC, i.id DESC LIMIT v_wanted OFFSET v_left);
    END IF;
  END IF;
  IF v_ids IS NOT NULL THEN
  SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
  INTO summaries FROM unnest(v_ids) k (id);
  END IF;
END $body$;

CREATE OR REPLACE FUNCTION fatura.list_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text, p_from bigint, p_before bigint, OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_counted boolean;
  v_filtered boolean := num_nonnulls(p_status, p_ix_status, p_from, p_before) > 0;
BEGIN
  SELECT c.total, c.version, c.counted, f.synced_at INTO total, version, v_counted, synced_at
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
  total := coalesce(total, 0);
  IF v_counted AND (v_filtered OR p_page > 1) AND NOT false THEN
    SELECT l.total, l.page, l.summaries INTO total, page, summaries FROM fatura.list_counted(p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before) l;
    RETURN;
  END IF;
  IF v_filtered THEN
    SELECT count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991);
  END IF;
  page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
  IF v_filtered THEN
    SELECT string_agg(r.summary, ',') INTO summaries FROM (
      SELECT i.summary FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
  ELSE
    SELECT string_agg(r.summary, ',') INTO summaries FROM (
      SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
  END IF;
END $body$;

CREATE OR REPLACE FUNCTION fatura.search_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text, p_from bigint, p_before bigint, p_words text[], p_alternatives text[],
  p_groups integer[], OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_parties bigint; v_word text; v_alternative text; v_of bigint[]; v_free bigint[];
  v_words bytea[] := '{}'; v_holders bigint[] := '{}'; v_ends integer[] := '[0:0]={0}';
  v_condition text; v_found text; v_lacks text; v_of_free text; v_ids text[]; v_left bigint; v_in_days boolean;
  v_days integer[]; v_ns bigint[]; v_group integer; v_signed integer[];
BEGIN

  SELECT count(*) INTO v_parties FROM fatura.parties y WHERE y.customer_id = p_customer_id;
  FOR v_word, v_alternative IN
    SELECT w.word, coalesce(w.alternative, w.word) FROM unnest(p_words, p_alternatives) w (word, alternative)
    ORDER BY length(w.word) DESC, w.word
  LOOP
    v_of := ARRAY(
      SELECT y.party_id FROM fatura.parties y WHERE y.customer_id = p_customer_id
        AND (strpos(y.text, v_word) > 0 OR strpos(y.text, v_alternative) > 0));
    CONTINUE WHEN cardinality(v_of) = v_parties;
    v_free := CASE WHEN v_free IS NULL THEN v_of ELSE ARRAY(SELECT unnest(v_free) INTERSECT SELECT unnest(v_of)) END;
    v_words := v_words || convert_to(v_word, 'UTF8');
    v_holders := v_holders || v_of;
    v_ends := v_ends || cardinality(v_holders);
  END LOOP;
  IF cardinality(v_words) = 0 THEN
    SELECT l.total, l.page, l.summaries, l.version, l.synced_at INTO total, page, summaries, version, synced_at
    FROM fatura.list_invoices(p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before) l;
    RETURN;
  END IF;
  SELECT c.version, f.synced_at, c.counted AND NOT num_nonnulls(p_status, p_ix_status) > 0
  INTO version, synced_at, v_in_days
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;

  SELECT string_agg(format('(%s position($2[%s] IN i.own_text) > 0)', CASE v_ends[n] - v_ends[n - 1]
      WHEN 0 THEN ''
      WHEN 1 THEN format('i.party_id = $3[%s] OR', v_ends[n])
      ELSE format('i.party_id = ANY ($3[%s:%s]) OR', v_ends[n - 1] + 1, v_ends[n]) END, n), ' AND ' ORDER BY n)
  INTO v_condition FROM generate_series(1, cardinality(v_words)) n;
  IF v_in_days THEN
    IF cardinality(v_free) <= 4 THEN
      SELECT string_agg(format('position($2[%s] IN s.joined) = 0', n), ' OR ') INTO v_lacks
      FROM generate_series(1, cardinality(v_words)) n
      WHERE octet_length(v_words[n]) >= 5 AND v_ends[n] - v_ends[n - 1] = cardinality(v_free);
      SELECT string_agg(format('cardinality(array_positions(s.parties, %s))', f.party_id), ' + ') INTO v_of_free
      FROM unnest(v_free) f (party_id);
    END IF;
    FOREACH v_group IN ARRAY p_groups LOOP
      EXIT WHEN cardinality(v_signed) <= 4;
      v_signed := CASE WHEN v_signed IS NULL
        THEN ARRAY(SELECT g.first FROM fatura.search_signs g WHERE g.customer_id = p_customer_id
          AND g.part = v_group >> 27 & 31 AND get_bit(g.bits, v_group & (8 * length(g.bits) - 1)) = 1)
        ELSE ARRAY(SELECT d.first FROM unnest(v_signed) d (first) WHERE (SELECT true FROM fatura.search_signs g WHERE g.customer_id = p_customer_id
          AND g.part = v_group >> 27 & 31 AND get_bit(g.bits, v_group & (8 * length(g.bits) - 1)) = 1 AND g.first = d.first)) END;
    END LOOP;
    EXECUTE format('SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) FROM (
      SELECT s.day, CASE WHEN %s THEN %s ELSE (
        SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text%s) i WHERE %s) END AS n
      FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day >= %s AND s.day < %s%s
      ORDER BY s.day DESC OFFSET 0) q WHERE q.n > 0',
      coalesce(v_lacks, 'false'), coalesce(v_of_free, '0'),
      CASE WHEN cardinality(v_holders) > 0 THEN ', unnest(s.parties) AS party_id' END, v_condition,
      coalesce(p_from / 86400000, -1073741824), coalesce(p_before / 86400000, 1073741824),
      CASE WHEN v_signed IS NOT NULL THEN ' AND s.day = ANY ($4)' END)
    INTO v_days, v_ns, total USING p_customer_id, v_words, v_holders, v_signed;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    v_ids := '{}';
    FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
      EXIT WHEN cardinality(v_ids) >= p_page_size;
      IF v_left >= v_ns[v_at] THEN
        v_left := v_left - v_ns[v_at];
      ELSE
        EXECUTE format('SELECT $6 || ARRAY(
          SELECT i.id FROM fatura.invoices i WHERE i.customer_id = $1 AND i.issued_at >= $4 AND i.issued_at < $5 AND %s
          ORDER BY i.issued_at DESC, i.id DESC LIMIT %s OFFSET %s)', v_condition, p_page_size - cardinality(v_ids), v_left)
        INTO v_ids USING p_customer_id, v_words, v_holders, v_days[v_at]::bigint * 86400000, (v_days[v_at] + 1)::bigint * 86400000, v_ids;
        v_left := 0;
      END IF;
    END LOOP;
  ELSE
    v_found := 'FROM fatura.invoices i WHERE i.customer_id = $1 AND ($4 IS NULL OR i.status = $4) AND ($5 IS NULL OR i.ix_status = $5) AND i.issued_at >= coalesce($6, -9007199254740991) AND i.issued_at < coalesce($7, 9007199254740991) AND ' || v_condition;
    EXECUTE 'SELECT ARRAY(SELECT i.id ' || v_found || ' ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001)' INTO v_ids
    USING p_customer_id, v_words, v_holders, p_status, p_ix_status, p_from, p_before;
    total := cardinality(v_ids);
    IF total > 1000 THEN
      EXECUTE 'SELECT count(*) ' || v_found INTO total USING p_customer_id, v_words, v_holders, p_status, p_ix_status, p_from, p_before;
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      EXECUTE format('SELECT ARRAY(SELECT i.id %s ORDER BY i.issued_at DESC, i.id DESC LIMIT %s OFFSET %s)', v_found, p_page_size, v_left)
      INTO v_ids USING p_customer_id, v_words, v_holders, p_status, p_ix_status, p_from, p_before;
    ELSE
      EXECUTE format('SELECT ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at %s ORDER BY i.issued_at, i.id LIMIT %s OFFSET %s) r ORDER BY r.issued_at DESC, r.id DESC)',
        v_found, least(p_page_size, total - v_left), greatest(0, total - v_left - p_page_size))
      INTO v_ids USING p_customer_id, v_words, v_holders, p_status, p_ix_status, p_from, p_before;
    END IF;
  END IF;

  SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
  INTO summaries FROM unnest(v_ids) k (id);
END $body$;

CREATE OR REPLACE FUNCTION fatura.find_token(p_id text) RETURNS SETOF fatura.tokens
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN QUERY SELECT * FROM fatura.tokens t WHERE t.id = p_id; END $body$;

CREATE OR REPLACE FUNCTION fatura.schema_version() RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;

CREATE OR REPLACE FUNCTION fatura.schema_state(OUT version integer, OUT sha256 text, OUT is_rewriting boolean)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT m.version, m.sha256, EXISTS (SELECT FROM fatura.migrations o WHERE o.version > 0 AND o.rewriting IS NOT NULL)
  INTO version, sha256, is_rewriting
  FROM fatura.migrations m ORDER BY m.version DESC LIMIT 1;
END $body$;
