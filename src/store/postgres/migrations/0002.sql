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

-- By it, the last invoice of a party is known for it.
CREATE INDEX invoices_by_party ON fatura.invoices (customer_id, party_id);

-- Where most customers have one invoice, the planner would expect one of every customer, and take any index that begins
-- with the customer to find an invoice: at a customer of a million, it would read a million. So it expects a hundred.
ALTER TABLE fatura.invoices ALTER customer_id SET (n_distinct = -0.01);

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
  OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_parties bigint[]; v_lefts text[]; v_free bigint[]; v_party bigint; v_is_free boolean; v_needed text[];
  v_word bytea; v_word_2 bytea; v_word_3 bytea; v_word_4 bytea; v_word_5 bytea; v_word_6 bytea; v_word_7 bytea; v_word_8 bytea; v_word_9 bytea; v_word_10 bytea;
  v_needs_3 boolean; v_others bytea[]; v_further bytea[]; v_fits boolean; v_is_all boolean; v_leaves_2 boolean;
  v_ids text[]; v_left bigint; v_last bigint; v_in_days boolean; v_days integer[]; v_ns bigint[];
BEGIN

  SELECT array_agg(q.party_id), array_agg(q.words) INTO v_parties, v_lefts FROM (
    SELECT y.party_id, (
      SELECT coalesce(string_agg(w.word, E'\n' ORDER BY length(w.word) DESC, w.word), '')
      FROM unnest(p_words, p_alternatives) w (word, alternative)
      WHERE NOT (strpos(y.text, w.word) > 0 OR strpos(y.text, coalesce(w.alternative, w.word)) > 0)
    ) AS words
    FROM fatura.parties y WHERE y.customer_id = p_customer_id LIMIT 65) q;
  IF '' = ALL (v_lefts) AND cardinality(v_parties) <= 64 THEN
    SELECT l.total, l.page, l.summaries, l.version, l.synced_at INTO total, page, summaries, version, synced_at
    FROM fatura.list_invoices(p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before) l;
    RETURN;
  END IF;
  SELECT c.version, f.synced_at, c.counted AND num_nonnulls(p_status, p_ix_status) = 0
  INTO version, synced_at, v_in_days
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
  IF cardinality(v_parties) > 64 THEN
    v_word := convert_to(p_words[1], 'UTF8');
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND EXISTS (
          SELECT FROM fatura.parties y WHERE y.customer_id = p_customer_id AND y.party_id = i.party_id
            AND (position(v_word IN i.own_text) > 0 OR (strpos(y.text, p_words[1]) > 0 OR strpos(y.text, coalesce(p_alternatives[1], p_words[1])) > 0))
            AND (cardinality(p_words) < 2 OR NOT EXISTS (
              SELECT FROM unnest(p_words, p_alternatives) w (word, alternative)
              WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0 AND NOT (strpos(y.text, w.word) > 0 OR strpos(y.text, coalesce(w.alternative, w.word)) > 0)))) ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND EXISTS (
          SELECT FROM fatura.parties y WHERE y.customer_id = p_customer_id AND y.party_id = i.party_id
            AND (position(v_word IN i.own_text) > 0 OR (strpos(y.text, p_words[1]) > 0 OR strpos(y.text, coalesce(p_alternatives[1], p_words[1])) > 0))
            AND (cardinality(p_words) < 2 OR NOT EXISTS (
              SELECT FROM unnest(p_words, p_alternatives) w (word, alternative)
              WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0 AND NOT (strpos(y.text, w.word) > 0 OR strpos(y.text, coalesce(w.alternative, w.word)) > 0)))) AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND EXISTS (
          SELECT FROM fatura.parties y WHERE y.customer_id = p_customer_id AND y.party_id = i.party_id
            AND (position(v_word IN i.own_text) > 0 OR (strpos(y.text, p_words[1]) > 0 OR strpos(y.text, coalesce(p_alternatives[1], p_words[1])) > 0))
            AND (cardinality(p_words) < 2 OR NOT EXISTS (
              SELECT FROM unnest(p_words, p_alternatives) w (word, alternative)
              WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0 AND NOT (strpos(y.text, w.word) > 0 OR strpos(y.text, coalesce(w.alternative, w.word)) > 0))))
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND EXISTS (
          SELECT FROM fatura.parties y WHERE y.customer_id = p_customer_id AND y.party_id = i.party_id
            AND (position(v_word IN i.own_text) > 0 OR (strpos(y.text, p_words[1]) > 0 OR strpos(y.text, coalesce(p_alternatives[1], p_words[1])) > 0))
            AND (cardinality(p_words) < 2 OR NOT EXISTS (
              SELECT FROM unnest(p_words, p_alternatives) w (word, alternative)
              WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0 AND NOT (strpos(y.text, w.word) > 0 OR strpos(y.text, coalesce(w.alternative, w.word)) > 0))))
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
  ELSE
    v_free := ARRAY(SELECT u.party_id FROM unnest(v_parties, v_lefts) u (party_id, words) WHERE u.words = '');
    v_party := v_free[1];
    v_is_free := cardinality(v_free) > 1;
    v_needed := ARRAY(
      SELECT DISTINCT w.word FROM unnest(p_words) w (word) WHERE NOT EXISTS (
        SELECT FROM unnest(v_lefts) u (words) WHERE u.words <> '' AND w.word <> ALL (string_to_array(u.words, E'\n'))));
    v_needed := ARRAY(SELECT w.word FROM unnest(v_needed) w (word) ORDER BY length(w.word) DESC);
    v_word := convert_to(coalesce(v_needed[1], ''), 'UTF8');
    v_word_2 := convert_to(coalesce(v_needed[2], ''), 'UTF8');
    v_word_3 := convert_to(coalesce(v_needed[3], ''), 'UTF8');
    v_word_4 := convert_to(coalesce(v_needed[4], ''), 'UTF8');
    v_word_5 := convert_to(coalesce(v_needed[5], ''), 'UTF8');
    v_word_6 := convert_to(coalesce(v_needed[6], ''), 'UTF8');
    v_word_7 := convert_to(coalesce(v_needed[7], ''), 'UTF8');
    v_word_8 := convert_to(coalesce(v_needed[8], ''), 'UTF8');
    v_word_9 := convert_to(coalesce(v_needed[9], ''), 'UTF8');
    v_word_10 := convert_to(coalesce(v_needed[10], ''), 'UTF8');
    v_needs_3 := cardinality(v_needed) <= 3;
    v_fits := cardinality(v_needed) <= 10;
    SELECT v_fits AND coalesce(max(q.others), 0) = 0, v_fits AND coalesce(max(q.others), 0) <= 2
    INTO v_is_all, v_leaves_2 FROM (
      SELECT count(*) AS others FROM unnest(v_lefts) WITH ORDINALITY u (words, place), string_to_table(u.words, E'\n') w (word)
      WHERE u.words <> '' AND w.word <> ALL (v_needed) GROUP BY u.place) q;
    v_others := ARRAY(
      SELECT convert_to(coalesce((
        SELECT array_agg(w.word ORDER BY length(w.word) DESC)
        FROM string_to_table(u.words, E'\n') w (word) WHERE w.word <> ALL (v_needed))[1], ''), 'UTF8')
      FROM unnest(v_lefts) WITH ORDINALITY u (words, place) ORDER BY u.place);
    v_further := ARRAY(
      SELECT convert_to(coalesce((
        SELECT array_agg(w.word ORDER BY length(w.word) DESC)
        FROM string_to_table(u.words, E'\n') w (word) WHERE w.word <> ALL (v_needed))[2], ''), 'UTF8')
      FROM unnest(v_lefts) WITH ORDINALITY u (words, place) ORDER BY u.place);
    IF v_in_days AND v_is_all AND num_nonnulls(v_party, v_needed[2]) = 0 THEN
    SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) INTO v_days, v_ns, total FROM (
      SELECT s.day, CASE WHEN octet_length(v_word) > 4 AND position(v_word IN s.joined) = 0 THEN 0
        ELSE (SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text) i WHERE position(v_word IN i.own_text) > 0) END AS n
      FROM fatura.search_days s
      WHERE s.customer_id = p_customer_id AND s.day >= coalesce(p_from / 86400000, -1073741824)
        AND s.day < coalesce(p_before / 86400000, 1073741824)
      ORDER BY s.day DESC OFFSET 0) q
    WHERE q.n > 0;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    v_ids := '{}';
    FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
      EXIT WHEN cardinality(v_ids) >= p_page_size;
      IF v_left >= v_ns[v_at] THEN
        v_left := v_left - v_ns[v_at];
      ELSE
        v_ids := v_ids || ARRAY(
          SELECT i.id FROM fatura.invoices i
          WHERE i.customer_id = p_customer_id AND i.issued_at >= v_days[v_at]::bigint * 86400000
            AND i.issued_at < (v_days[v_at] + 1)::bigint * 86400000 AND position(v_word IN i.own_text) > 0
          ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
        v_left := 0;
      END IF;
    END LOOP;
    ELSIF v_in_days AND v_is_all AND v_party IS NULL THEN
    SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) INTO v_days, v_ns, total FROM (
      SELECT s.day, CASE WHEN octet_length(v_word) > 4 AND position(v_word IN s.joined) = 0 THEN 0
        ELSE (SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text) i WHERE position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0)) END AS n
      FROM fatura.search_days s
      WHERE s.customer_id = p_customer_id AND s.day >= coalesce(p_from / 86400000, -1073741824)
        AND s.day < coalesce(p_before / 86400000, 1073741824)
      ORDER BY s.day DESC OFFSET 0) q
    WHERE q.n > 0;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    v_ids := '{}';
    FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
      EXIT WHEN cardinality(v_ids) >= p_page_size;
      IF v_left >= v_ns[v_at] THEN
        v_left := v_left - v_ns[v_at];
      ELSE
        v_ids := v_ids || ARRAY(
          SELECT i.id FROM fatura.invoices i
          WHERE i.customer_id = p_customer_id AND i.issued_at >= v_days[v_at]::bigint * 86400000
            AND i.issued_at < (v_days[v_at] + 1)::bigint * 86400000 AND position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0)
          ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
        v_left := 0;
      END IF;
    END LOOP;
    ELSIF v_in_days THEN
    SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) INTO v_days, v_ns, total FROM (
      SELECT s.day, CASE WHEN octet_length(v_word) > 4 AND position(v_word IN s.joined) = 0 THEN (SELECT coalesce(sum(cardinality(array_positions(s.parties, f.party_id))), 0) FROM unnest(v_free) f (party_id))
        ELSE (SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text, unnest(s.parties) AS party_id) i WHERE (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))) END AS n
      FROM fatura.search_days s
      WHERE s.customer_id = p_customer_id AND s.day >= coalesce(p_from / 86400000, -1073741824)
        AND s.day < coalesce(p_before / 86400000, 1073741824)
      ORDER BY s.day DESC OFFSET 0) q
    WHERE q.n > 0;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    v_ids := '{}';
    FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
      EXIT WHEN cardinality(v_ids) >= p_page_size;
      IF v_left >= v_ns[v_at] THEN
        v_left := v_left - v_ns[v_at];
      ELSE
        v_ids := v_ids || ARRAY(
          SELECT i.id FROM fatura.invoices i
          WHERE i.customer_id = p_customer_id AND i.issued_at >= v_days[v_at]::bigint * 86400000
            AND i.issued_at < (v_days[v_at] + 1)::bigint * 86400000 AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
          ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
        v_left := 0;
      END IF;
    END LOOP;
    ELSIF v_is_all AND num_nonnulls(v_party, v_needed[2], p_status, p_ix_status) = 0 THEN
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
    ELSIF v_is_all AND v_party IS NULL THEN
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0)
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0)
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
    ELSE
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0)))) ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0)))) AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status) AND i.issued_at >= coalesce(p_from, -9007199254740991) AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_word_2 IN i.own_text) > 0 AND position(v_word_3 IN i.own_text) > 0
          AND (v_needs_3 OR position(v_word_4 IN i.own_text) > 0 AND position(v_word_5 IN i.own_text) > 0 AND position(v_word_6 IN i.own_text) > 0 AND position(v_word_7 IN i.own_text) > 0 AND position(v_word_8 IN i.own_text) > 0 AND position(v_word_9 IN i.own_text) > 0 AND position(v_word_10 IN i.own_text) > 0) AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (v_leaves_2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
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
