CREATE TABLE fatura.invoices (
  customer_id text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  issued_at   bigint NOT NULL,
  status      text COLLATE "C" NOT NULL,
  ix_status   text COLLATE "C",
  party_id    bigint NOT NULL,
  -- UTF-8, as bytes: to look for bytes in bytes is half the work of looking for characters in text.
  own_text    bytea NOT NULL,
  summary     text COLLATE "C" NOT NULL,
  observed_at bigint NOT NULL,
  PRIMARY KEY (customer_id, id)
);

-- A search reads the index alone, once the rows are known to be visible to all: so they are looked over often.
ALTER TABLE fatura.invoices SET (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX invoices_unsettled ON fatura.invoices (customer_id, id) WHERE status IN ('draft', 'open');

CREATE TABLE fatura.tombstones (
  customer_id text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  observed_at bigint NOT NULL,
  PRIMARY KEY (customer_id, id)
);

CREATE INDEX invoices_in_order ON fatura.invoices (customer_id, issued_at DESC, id DESC)
  INCLUDE (status, ix_status, party_id, own_text);

-- One for each kind of filter, in the list's order: a large customer's rare state is one short scan.
CREATE INDEX invoices_by_status ON fatura.invoices (customer_id, status, issued_at DESC, id DESC);
CREATE INDEX invoices_by_ix_status ON fatura.invoices (customer_id, ix_status, issued_at DESC, id DESC);
CREATE INDEX invoices_by_state ON fatura.invoices (customer_id, status, ix_status, issued_at DESC, id DESC);

CREATE TABLE fatura.parties (
  customer_id text COLLATE "C" NOT NULL,
  party_id    bigint NOT NULL,
  text        text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, party_id)
);

CREATE TABLE fatura.invoice_lines (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  lines       text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id)
);

CREATE TABLE fatura.customers (
  customer_id text COLLATE "C" PRIMARY KEY,
  version     bigint NOT NULL,
  total       bigint NOT NULL DEFAULT 0,
  counted     boolean NOT NULL DEFAULT false,
  -- Page 1 as it is asked for by default: the newest summaries, as they are sent.
  head        text COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE fatura.counts (
  customer_id text COLLATE "C" NOT NULL,
  span        integer NOT NULL,
  status      text COLLATE "C" NOT NULL,
  ix          text COLLATE "C" NOT NULL,
  start       integer NOT NULL,
  n           bigint NOT NULL,
  PRIMARY KEY (customer_id, span, status, ix, start)
);

-- Of a customer with counters: the own texts and the parties of a day's invoices, in the list's order; the texts also
-- joined, to pass over a day at once.
CREATE TABLE fatura.search_days (
  customer_id text COLLATE "C" NOT NULL,
  day         integer NOT NULL,
  texts       bytea[] NOT NULL,
  parties     bigint[] NOT NULL,
  joined      bytea NOT NULL,
  PRIMARY KEY (customer_id, day)
);
-- Unpacking them would take longer than looking through them.
ALTER TABLE fatura.search_days ALTER texts SET STORAGE EXTERNAL, ALTER parties SET STORAGE EXTERNAL,
  ALTER joined SET STORAGE EXTERNAL;

CREATE TABLE fatura.streams (
  name         text COLLATE "C" PRIMARY KEY,
  cursor       text COLLATE "C",
  succeeded_at bigint,
  failed_at    bigint,
  error        text COLLATE "C"
);

-- Until when the records follow their sources: until the last time that all events were applied and the documents
-- that change were looked at, once everything was read to its end. An import counts only where nothing else brings
-- records.
CREATE VIEW fatura.current_freshness AS
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN name LIKE '%:events' OR name LIKE 'ix:%' AND name <> 'ix:all' THEN succeeded_at END),
      min(succeeded_at)) END AS synced_at
  FROM fatura.streams
  WHERE name NOT LIKE '%:unsettled' AND (name <> 'import' OR NOT EXISTS (SELECT 1 FROM fatura.streams WHERE name <> 'import'));

CREATE TABLE fatura.freshness (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  synced_at bigint
);
INSERT INTO fatura.freshness (synced_at) VALUES (NULL);

CREATE TABLE fatura.links (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  state       text COLLATE "C",
  claimed_id  bigint,
  ix_id       bigint,
  claim       text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id)
);
CREATE INDEX links_by_invoice ON fatura.links (invoice_id);
CREATE INDEX links_by_claim ON fatura.links (claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX links_by_document ON fatura.links (ix_id) WHERE ix_id IS NOT NULL;
CREATE INDEX links_creating ON fatura.links (customer_id, invoice_id) WHERE state = 'creating';

CREATE TABLE fatura.documents (
  id          bigint PRIMARY KEY,
  status      text COLLATE "C",
  reference   text COLLATE "C",
  date        text COLLATE "C",
  client_id   bigint,
  body        text COLLATE "C",
  misses      integer NOT NULL,
  observed_at bigint NOT NULL
);
CREATE INDEX documents_by_reference ON fatura.documents (reference) WHERE reference IS NOT NULL;
CREATE INDEX documents_by_date ON fatura.documents (date, id);
CREATE INDEX documents_open ON fatura.documents (id) WHERE status IN ('draft', 'final', 'sent');

CREATE TABLE fatura.document_clients (
  id          bigint PRIMARY KEY,
  tax_id      text COLLATE "C",
  observed_at bigint NOT NULL
);

CREATE TABLE fatura.journal (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  cause       text COLLATE "C" NOT NULL,
  type        text COLLATE "C" NOT NULL,
  happened_at bigint,
  at          bigint NOT NULL,
  outcome     text COLLATE "C" NOT NULL,
  detail      text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, cause)
);

CREATE TABLE fatura.observation (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  last_at  bigint NOT NULL
);
INSERT INTO fatura.observation (last_at) VALUES (0);

CREATE TABLE fatura.tokens (
  id         text COLLATE "C" PRIMARY KEY,
  name       text NOT NULL,
  hash       text COLLATE "C" NOT NULL,
  customers  text[],
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

CREATE FUNCTION fatura.first_page(p_customer_id text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_page text;
BEGIN
  SELECT coalesce(c.total, 0) || ' ' || coalesce(c.version, 0) || ' ' || coalesce(f.synced_at::text, '') || E'\n'
    || coalesce(c.head, '') INTO v_page
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
  RETURN v_page;
END $body$;

CREATE FUNCTION fatura.list_counted(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
p_from bigint, p_before bigint, OUT total bigint, OUT page bigint, OUT summaries text) LANGUAGE plpgsql STABLE AS $body$
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

CREATE FUNCTION fatura.list_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
p_from bigint, p_before bigint, OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint, OUT synced_at bigint)

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
  IF v_counted AND (v_filtered OR p_page > 1) THEN
    SELECT l.total, l.page, l.summaries INTO total, page, summaries FROM fatura.list_counted(p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before) l;
    RETURN;
  END IF;
  IF v_filtered THEN
    SELECT count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status);
  END IF;
  page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
  IF v_filtered THEN
    SELECT string_agg(r.summary, ',') INTO summaries FROM (
      SELECT i.summary FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
  ELSE
    SELECT string_agg(r.summary, ',') INTO summaries FROM (
      SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id
      ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET (page - 1) * p_page_size) r;
  END IF;
END $body$;

CREATE FUNCTION fatura.search_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
p_from bigint, p_before bigint, p_words text[], p_alternatives text[],
  OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_parties bigint[]; v_lefts text[]; v_free bigint[]; v_party bigint; v_is_free boolean; v_needed text[];
  v_word bytea; v_second bytea; v_third bytea; v_others bytea[]; v_further bytea[]; v_is_all boolean;
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
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
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
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
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
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
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
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
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
    v_second := convert_to(coalesce(v_needed[2], ''), 'UTF8');
    v_third := convert_to(coalesce(v_needed[3], ''), 'UTF8');
    v_is_all := cardinality(v_needed) <= 3 AND NOT EXISTS (
      SELECT FROM unnest(v_lefts) u (words), string_to_table(u.words, E'\n') w (word)
      WHERE u.words <> '' AND w.word <> ALL (v_needed));
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
        ELSE (SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text) i WHERE position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0) END AS n
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
            AND i.issued_at < (v_days[v_at] + 1)::bigint * 86400000 AND position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0
          ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
        v_left := 0;
      END IF;
    END LOOP;
    ELSIF v_in_days THEN
    SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) INTO v_days, v_ns, total FROM (
      SELECT s.day, CASE WHEN octet_length(v_word) > 4 AND position(v_word IN s.joined) = 0 THEN (SELECT coalesce(sum(cardinality(array_positions(s.parties, f.party_id))), 0) FROM unnest(v_free) f (party_id))
        ELSE (SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text, unnest(s.parties) AS party_id) i WHERE (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
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
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
          ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
        v_left := 0;
      END IF;
    END LOOP;
    ELSIF v_is_all AND num_nonnulls(v_party, v_needed[2], p_status, p_ix_status) = 0 THEN
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0 AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
        AND position(v_word IN i.own_text) > 0
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
    ELSIF v_is_all AND v_party IS NULL THEN
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (i.issued_at, i.id) < (v_last, v_ids[1001]);
    END IF;
    page := greatest(1, least(p_page, (total + p_page_size - 1) / p_page_size));
    v_left := (page - 1) * p_page_size;
    IF v_left + p_page_size <= 1000 OR total <= 1000 THEN
      v_ids := v_ids[v_left + 1 : v_left + p_page_size];
    ELSIF v_left < total / 2 THEN
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
    ELSE
    v_ids := ARRAY(SELECT i.id FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0)))) ORDER BY i.issued_at DESC, i.id DESC LIMIT 1001);
    total := cardinality(v_ids);
    IF total > 1000 THEN
      SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
      SELECT total + count(*) INTO total FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
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
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
        ORDER BY i.issued_at DESC, i.id DESC LIMIT p_page_size OFFSET v_left) r);
    ELSE
      v_ids := ARRAY(SELECT r.id FROM (
        SELECT i.id, i.issued_at FROM fatura.invoices i WHERE
    i.customer_id = p_customer_id
    AND i.issued_at >= coalesce(p_from, -9007199254740991)
    AND i.issued_at < coalesce(p_before, 9007199254740991)
    AND (p_status IS NULL OR i.status = p_status) AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)
        AND (i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
          OR position(v_word IN i.own_text) > 0 AND position(v_second IN i.own_text) > 0 AND position(v_third IN i.own_text) > 0 AND (v_is_all
            OR position(v_others[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND position(v_further[array_position(v_parties, i.party_id)] IN i.own_text) > 0
              AND (cardinality(p_words) <= 2 OR NOT EXISTS (
                SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\n') w (word)
                WHERE NOT position(convert_to(w.word, 'UTF8') IN i.own_text) > 0))))
        ORDER BY i.issued_at, i.id LIMIT least(p_page_size, total - v_left) OFFSET greatest(0, total - v_left - p_page_size)) r ORDER BY r.issued_at DESC, r.id DESC);
    END IF;
    END IF;
  END IF;

  SELECT string_agg((SELECT i.summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = k.id), ',')
  INTO summaries FROM unnest(v_ids) k (id);
END $body$;

CREATE FUNCTION fatura.read_snapshot(p_customer_id text, OUT version bigint, OUT synced_at bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT c.version, f.synced_at INTO version, synced_at
  FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
END $body$;

CREATE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
RETURNS TABLE (summary text, lines text, synced_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN QUERY
  SELECT i.summary, l.lines, (SELECT f.synced_at FROM fatura.freshness f)
  FROM fatura.invoices i
  LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
  WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
END $body$;

CREATE FUNCTION fatura.find_token(p_id text) RETURNS SETOF fatura.tokens
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN QUERY SELECT * FROM fatura.tokens t WHERE t.id = p_id; END $body$;

CREATE FUNCTION fatura.schema_version() RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;
