-- Keys that sign customer links: the public half alone. `x` is the Ed25519 point, in base64url, as a JWK holds it.
CREATE TABLE fatura.keys (
  kid        text COLLATE "C" PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  x          text COLLATE "C" NOT NULL,
  customers  text[],
  created_at bigint NOT NULL,
  revoked_at bigint
);

-- The customers of tokens and keys that are not for all of them: a request asks for one.
CREATE TABLE fatura.scopes (
  id          text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (id, customer_id)
);
INSERT INTO fatura.scopes SELECT DISTINCT id, unnest(customers) FROM fatura.tokens;
DROP FUNCTION fatura.find_token(text);

-- Comparisons of the store with its sources, a row an hour: stored invoices that were compared, and how many differed; invoices of the
-- source that were looked for, and how many were missing; how many of both were put right, and how many near them.
CREATE TABLE fatura.drift (
  hour       bigint PRIMARY KEY,
  compared   bigint NOT NULL,
  differing  bigint NOT NULL,
  listed     bigint NOT NULL,
  missing    bigint NOT NULL,
  repaired   bigint NOT NULL,
  neighbours bigint NOT NULL
);

-- What an accountant misses: paid invoices without a document in force, where one is needed.
CREATE INDEX invoices_uncertified ON fatura.invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';

-- A day tells how many invoices it had when it was signed, and whether signs and words are those of its texts.
ALTER TABLE fatura.search_days ADD COLUMN signed_size integer NOT NULL DEFAULT 0,
  ADD COLUMN is_signed boolean NOT NULL DEFAULT false;
CREATE INDEX search_days_unsigned ON fatura.search_days (customer_id, day) WHERE NOT is_signed;
ALTER TABLE fatura.search_signs RENAME COLUMN first TO day;

-- Who is found by a word, on days of many invoices. A day's parts lie together, so that few pages change with it.
CREATE TABLE fatura.search_words (
  customer_id text COLLATE "C" NOT NULL,
  day         integer NOT NULL,
  part        integer NOT NULL,
  bits        bytea NOT NULL,
  PRIMARY KEY (customer_id, day, part)
);
ALTER TABLE fatura.search_words ALTER bits SET STORAGE EXTERNAL;

-- On Citus, the freshness and the tokens lie at the coordinator: the former is read alone.
DROP FUNCTION fatura.read_snapshot(text);
DROP FUNCTION fatura.find_invoice(text, text);
DROP FUNCTION fatura.list_invoices(text, bigint, bigint, text, text, bigint, bigint);
DROP FUNCTION fatura.search_invoices(text, bigint, bigint, text, text, bigint, bigint, text[], text[], integer[]);

-- Functions, written here by npm run functions.
CREATE OR REPLACE FUNCTION fatura.read_freshness() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT f.synced_at FROM fatura.freshness f WHERE f.only_one); END $body$;

CREATE OR REPLACE FUNCTION fatura.read_written_at() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_observed_at bigint; v_told_at bigint;
BEGIN
  SELECT o.last_at / 1000 INTO v_observed_at FROM fatura.observation o WHERE o.only_one;
  SELECT max(greatest(s.succeeded_at, s.failed_at)) INTO v_told_at FROM fatura.streams s WHERE s.name > '';
  RETURN greatest(v_observed_at, v_told_at);
END $body$;

CREATE OR REPLACE FUNCTION fatura.first_page(p_customer_id text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
DECLARE v_counted text; v_head text;
BEGIN
  SELECT c.total || ' ' || c.version, c.head INTO v_counted, v_head
  FROM fatura.customers c WHERE c.customer_id = p_customer_id;
  RETURN coalesce(v_counted, '0 0') || E'\n' || coalesce(v_head, '');
END $body$;

CREATE OR REPLACE FUNCTION fatura.read_version(p_customer_id text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN RETURN (SELECT c.version FROM fatura.customers c WHERE c.customer_id = p_customer_id); END $body$;

CREATE OR REPLACE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
RETURNS TABLE (summary text, lines text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  SELECT i.summary INTO summary FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT l.lines INTO lines FROM fatura.invoice_lines l
  WHERE l.customer_id = p_customer_id AND l.invoice_id = p_invoice_id;
  RETURN NEXT;
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

CREATE OR REPLACE FUNCTION fatura.list_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text, p_from bigint, p_before bigint, OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_counted boolean;
  v_filtered boolean := num_nonnulls(p_status, p_ix_status, p_from, p_before) > 0;
BEGIN
  SELECT c.total, c.version, c.counted INTO total, version, v_counted
  FROM fatura.customers c WHERE c.customer_id = p_customer_id;
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

CREATE OR REPLACE FUNCTION fatura.find_short(p_part bytea, p_word text, p_none varbit) RETURNS varbit LANGUAGE plpgsql IMMUTABLE STRICT AS $body$
DECLARE
  v_mark bytea := convert_to(E'\n' || left(p_word, 2) || '=', 'UTF8');
  v_line bytea; v_at integer; v_byte integer; v_text integer := -1; v_found varbit := p_none;
BEGIN
  v_at := position(v_mark IN p_part);
  IF v_at = 0 THEN RETURN p_none; END IF;
  v_line := substring(p_part FROM v_at + length(v_mark));
  v_at := position('\x0a'::bytea IN v_line);
  IF v_at > 0 THEN v_line := substring(v_line FROM 1 FOR v_at - 1); END IF;
  IF length(p_word) > 2 THEN
    v_at := position(decode(to_hex(63 + strpos('abcdefghijklmnopqrstuvwxyz0123456789_', substr(p_word, 3, 1))), 'hex') IN v_line);
    IF v_at = 0 THEN RETURN p_none; END IF;
    v_line := substring(v_line FROM v_at + 1);
  END IF;
  IF length(p_word) > 3 THEN
    v_at := position(decode(to_hex(15 + strpos('abcdefghijklmnopqrstuvwxyz0123456789_', substr(p_word, 4, 1))), 'hex') IN v_line);
    IF v_at = 0 OR convert_from(substring(v_line FROM 1 FOR v_at - 1), 'LATIN1') ~ '[@-e]' THEN RETURN p_none; END IF;
    v_line := substring(v_line FROM v_at + 1);
  END IF;
  FOR v_at IN 0 .. length(v_line) - 1 LOOP
    v_byte := get_byte(v_line, v_at);
    IF v_byte > 239 THEN
      v_text := v_text + (v_byte - 239) * 112;
    ELSIF v_byte > 127 THEN
      v_text := v_text + v_byte - 127;
      v_found := set_bit(v_found, v_text, 1);
    ELSE
      EXIT WHEN length(p_word) > 3 OR v_byte >= 64 AND length(p_word) > 2;
      v_text := -1;
    END IF;
  END LOOP;
  RETURN v_found;
END $body$;

CREATE OR REPLACE FUNCTION fatura.find_places(p_bits varbit) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE STRICT AS $body$
DECLARE v_bits varbit := p_bits; v_at integer := position(B'1' IN p_bits); v_last integer := -1; v_places integer[] := '{}';
BEGIN
  WHILE v_at > 0 LOOP
    v_last := v_last + v_at;
    v_places := v_places || v_last;
    v_bits := v_bits << v_at;
    v_at := position(B'1' IN v_bits);
  END LOOP;
  RETURN v_places;
END $body$;

CREATE OR REPLACE FUNCTION fatura.search_invoices(p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text, p_from bigint, p_before bigint, p_words text[], p_alternatives text[],
  p_groups integer[], OUT total bigint, OUT page bigint, OUT summaries text, OUT version bigint)

LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $body$
DECLARE
  v_parties bigint; v_word text; v_alternative text; v_of bigint[]; v_free bigint[];
  v_words bytea[] := '{}'; v_holders bigint[] := '{}'; v_ends integer[] := '[0:0]={0}';
  v_condition text; v_found text; v_lacks text; v_of_free text; v_ids text[]; v_left bigint; v_in_days boolean;
  v_days integer[]; v_ns bigint[]; v_group integer; v_signed integer[];
  v_place integer; v_held integer[] := '{}'; v_plain boolean[] := '{}'; v_texts text[] := '{}'; v_bits integer;
  v_exact text; v_possible text; v_own text; v_theirs text; v_each text; v_all text; v_any text;
BEGIN

  SELECT count(*) INTO v_parties FROM fatura.parties y WHERE y.customer_id = p_customer_id;
  FOR v_word, v_alternative, v_place IN
    SELECT w.word, coalesce(w.alternative, w.word), w.place
    FROM unnest(p_words, p_alternatives) WITH ORDINALITY w (word, alternative, place)
    ORDER BY length(w.word) DESC, w.word
  LOOP
    v_of := ARRAY(
      SELECT y.party_id FROM fatura.parties y WHERE y.customer_id = p_customer_id
        AND (strpos(y.text, v_word) > 0 OR strpos(y.text, v_alternative) > 0));
    IF cardinality(v_of) > 0 THEN v_held := v_held || v_place; END IF;
    CONTINUE WHEN cardinality(v_of) = v_parties;
    v_free := CASE WHEN v_free IS NULL THEN v_of ELSE ARRAY(SELECT unnest(v_free) INTERSECT SELECT unnest(v_of)) END;
    v_words := v_words || convert_to(v_word, 'UTF8');
    v_holders := v_holders || v_of;
    v_ends := v_ends || cardinality(v_holders);
    v_plain := v_plain || (v_word = v_alternative);
    v_texts := v_texts || v_word;
  END LOOP;
  IF cardinality(v_words) = 0 THEN
    SELECT l.total, l.page, l.summaries, l.version INTO total, page, summaries, version
    FROM fatura.list_invoices(p_customer_id, p_page, p_page_size, p_status, p_ix_status, p_from, p_before) l;
    RETURN;
  END IF;
  SELECT c.version, c.counted AND NOT num_nonnulls(p_status, p_ix_status) > 0 INTO version, v_in_days
  FROM fatura.customers c WHERE c.customer_id = p_customer_id;

  SELECT string_agg(format('(%s position($2[%s] IN i.own_text) > 0)', CASE v_ends[n] - v_ends[n - 1]
      WHEN 0 THEN ''
      WHEN 1 THEN format('i.party_id = $3[%s] OR', v_ends[n])
      ELSE format('i.party_id = ANY ($3[%s:%s]) OR', v_ends[n - 1] + 1, v_ends[n]) END, n), ' AND ' ORDER BY n)
  INTO v_condition FROM generate_series(1, cardinality(v_words)) n;
  IF v_in_days THEN
    IF cardinality(v_free) <= 4 THEN
      SELECT string_agg(format('position($2[%s] IN e.joined) = 0', n), ' OR ') INTO v_lacks
      FROM generate_series(1, cardinality(v_words)) n
      WHERE octet_length(v_words[n]) >= 5 AND v_ends[n] - v_ends[n - 1] = cardinality(v_free);
      SELECT string_agg(format('cardinality(array_positions(e.parties, %s))', f.party_id), ' + ') INTO v_of_free
      FROM unnest(v_free) f (party_id);
    END IF;
    -- A word that a party holds is on all days of the party: signs tell nothing of it.
    FOR v_group IN
      SELECT p_groups[n][1] FROM generate_series(1, array_length(p_groups, 1)) n
      WHERE p_groups[n][2] <> ALL (v_held) ORDER BY n LIMIT 12
    LOOP
      EXIT WHEN cardinality(v_signed) <= 4;
      v_signed := CASE WHEN v_signed IS NULL
        THEN ARRAY(SELECT g.day FROM fatura.search_signs g WHERE g.customer_id = p_customer_id AND g.part = v_group >> 27 & 31
          AND get_byte(g.bits, (v_group >> 3 & 16777215) % length(g.bits)) & (1 << (v_group & 7)) <> 0)
        ELSE ARRAY(SELECT d.day FROM unnest(v_signed) d (day) WHERE (SELECT true FROM fatura.search_signs g WHERE g.customer_id = p_customer_id AND g.part = v_group >> 27 & 31
          AND get_byte(g.bits, (v_group >> 3 & 16777215) % length(g.bits)) & (1 << (v_group & 7)) <> 0 AND g.day = d.day)) END;
    END LOOP;
    IF v_signed IS NOT NULL THEN
      v_signed := v_signed || ARRAY(
        SELECT k.start FROM fatura.counts k
        WHERE k.customer_id = p_customer_id AND k.span = 1 AND k.status = '' AND k.ix = '' AND k.n < 64)
        || ARRAY(SELECT s.day FROM fatura.search_days s WHERE s.customer_id = p_customer_id AND NOT s.is_signed);
    END IF;

    SELECT 8 * ((coalesce(max(k.n), 0) + 7) / 8) INTO v_bits FROM fatura.counts k
    WHERE k.customer_id = p_customer_id AND k.span = 1 AND k.status = '' AND k.ix = '';
    FOR v_at IN 1 .. cardinality(v_texts) LOOP
      v_word := v_texts[v_at];
      v_exact := NULL;
      v_possible := NULL;
      IF v_plain[v_at] AND v_word ~ '^[abcdefghijklmnopqrstuvwxyz0123456789_]{1,8}$' THEN
        v_exact := format('(SELECT (''x'' || nullif(split_part(split_part(convert_from(w.bits, ''UTF8''), E''\n'' || $5[%s] || '':'', 2), E''\n'', 1), ''''))::bit(%s) FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day)',
          v_at, v_bits, (3 * ascii(v_word) + 17 * ascii(substr(v_word, 2, 1)) + 11 * ascii(right(v_word, 1)) + 9 * length(v_word)) % 32);
      END IF;
      SELECT string_agg(format('coalesce((''x'' || nullif(split_part(split_part(k.lines, E''\n'' || $3[%s] || '':'', 2), E''\n'', 1), ''''))::bit(%s), $6)', h, v_bits), ' | ') INTO v_theirs
      FROM generate_series(v_ends[v_at - 1] + 1, v_ends[v_at]) h;
      v_theirs := '(SELECT ' || v_theirs || format(
        ' FROM (SELECT convert_from(w.bits, ''UTF8'') AS lines FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day) k WHERE k.lines <> '''')', 96);
      IF v_plain[v_at] AND v_ends[v_at] - v_ends[v_at - 1] <= 4 THEN
        IF v_word ~ '^[abcdefghijklmnopqrstuvwxyz0123456789_]{1,4}$' THEN
          v_own := format('(SELECT fatura.find_short(w.bits, $5[%s], $6) FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day)', v_at, 32 + (3 * ascii(v_word) + 17 * ascii(substr(v_word, 2, 1))) % 64);
          v_exact := CASE WHEN v_theirs IS NULL OR length(v_word) = 1 THEN format('coalesce(%s, %s)', v_exact, v_own)
            ELSE format('coalesce(%s | %s, %s)', v_own, v_theirs, v_exact) END;
        ELSIF v_word ~ '^[abcdefghijklmnopqrstuvwxyz0123456789_]{5,}$' THEN
          v_own := format('(SELECT CASE WHEN f.bits = $6 THEN $6
            ELSE f.bits & (SELECT fatura.find_short(w.bits, left($5[%s], 4), $6) FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day) END
            FROM (SELECT fatura.find_short(w.bits, right($5[%s], 4), $6) AS bits FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day OFFSET 0) f)',
            v_at, 32 + (3 * ascii(left(v_word, 4)) + 17 * ascii(substr(left(v_word, 4), 2, 1))) % 64, v_at, 32 + (3 * ascii(right(v_word, 4)) + 17 * ascii(substr(right(v_word, 4), 2, 1))) % 64);
          v_possible := format('CASE WHEN d.is_signed THEN %s END', replace(concat_ws(' | ', v_own, v_theirs), 's.day', 'd.day'));
          v_theirs := 'CASE WHEN ' || v_own || ' = $6 THEN ' || v_theirs || ' END';
          IF v_theirs IS NOT NULL THEN v_exact := format('coalesce(%s)', concat_ws(', ', v_theirs, v_exact)); END IF;
        END IF;
      END IF;
      v_each := concat_ws(', ', v_each, format('CASE WHEN s.is_signed THEN %s END AS b%s', coalesce(v_exact, 'NULL::varbit'), v_at));
      v_all := concat_ws(' & ', v_all, format('d.b%s', v_at));
      v_any := concat_ws(' & ', v_any, format('coalesce(d.b%s, %s, ~ $6)', v_at, coalesce(v_possible, 'NULL')));
    END LOOP;
    EXECUTE format('SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) FROM (
      SELECT e.day, CASE
        WHEN e.exact IS NOT NULL THEN bit_count(e.exact)
        WHEN bit_count(e.possible) = 0 THEN 0
        WHEN bit_count(e.possible) <= 16 THEN (
          SELECT count(*) FROM (SELECT e.texts[p + 1] AS own_text%1$s FROM unnest(fatura.find_places(e.possible)) p) i WHERE %2$s)
        WHEN %3$s THEN %4$s
        ELSE (SELECT count(*) FROM (SELECT unnest(e.texts) AS own_text%5$s) i WHERE %2$s) END AS n
      FROM (
        SELECT d.*, %6$s AS exact, CASE WHEN %6$s IS NULL THEN %7$s END AS possible FROM (
          SELECT s.*, %8$s FROM fatura.search_days s
          WHERE s.customer_id = $1 AND s.day >= %9$s AND s.day < %10$s%11$s
          ORDER BY s.day DESC OFFSET 0) d OFFSET 0) e OFFSET 0) q WHERE q.n > 0',
      CASE WHEN cardinality(v_holders) > 0 THEN ', e.parties[p + 1] AS party_id' END, v_condition,
      coalesce(v_lacks, 'false'), coalesce(v_of_free, '0'),
      CASE WHEN cardinality(v_holders) > 0 THEN ', unnest(e.parties) AS party_id' END,
      v_all, v_any, v_each,
      coalesce(p_from / 86400000, -1073741824), coalesce(p_before / 86400000, 1073741824),
      CASE WHEN v_signed IS NOT NULL THEN ' AND s.day = ANY ($4)' END)
    INTO v_days, v_ns, total USING p_customer_id, v_words, v_holders, v_signed, v_texts, ('x' || repeat('00', v_bits / 8))::varbit;
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

CREATE OR REPLACE FUNCTION fatura.read_token(p_id text)
RETURNS TABLE (id text, hash text, every_customer boolean, expires_at bigint, revoked_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN QUERY SELECT t.id, t.hash, t.customers IS NULL, t.expires_at, t.revoked_at
  FROM fatura.tokens t WHERE t.id = p_id;
END $body$;

CREATE OR REPLACE FUNCTION fatura.read_key(p_id text)
RETURNS TABLE (kid text, x text, every_customer boolean, revoked_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN QUERY SELECT k.kid, k.x, k.customers IS NULL, k.revoked_at FROM fatura.keys k WHERE k.kid = p_id;
END $body$;

CREATE OR REPLACE FUNCTION fatura.covers_customer(p_id text, p_customer_id text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog SET enable_seqscan = off AS $body$
BEGIN
  RETURN EXISTS (SELECT FROM fatura.scopes s WHERE s.id = p_id AND s.customer_id = p_customer_id);
END $body$;

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

CREATE OR REPLACE FUNCTION fatura.find_known(p_customer_id text, p_is_spread boolean, given_customer_id text, given_id text) RETURNS json LANGUAGE plpgsql SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $body$
DECLARE v_tables text[]; v_customer_id text[] := given_customer_id; v_id text[] := given_id; v_known json;
BEGIN
  IF p_is_spread THEN
    v_tables := ARRAY(
      SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
      FROM unnest(ARRAY['fatura.invoices', 'fatura.links', 'fatura.tombstones']) WITH ORDINALITY AS t (name, place)
      ORDER BY t.place);
  END IF;
  IF p_is_spread THEN
    EXECUTE format($sql$
    SELECT json_agg(json_build_array(g.customer_id, g.id, i.summary, coalesce(i.observed_at, t.observed_at), CASE WHEN i.id IS NOT NULL THEN l.claim END))
    FROM unnest($1, $2) WITH ORDINALITY AS g (customer_id, id, place) LEFT JOIN LATERAL (SELECT * FROM %1$s WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) i ON true
    LEFT JOIN LATERAL (SELECT * FROM %2$s WHERE customer_id = g.customer_id AND invoice_id = g.id OFFSET 0) l ON true LEFT JOIN LATERAL (SELECT * FROM %3$s WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) t ON true
    WHERE i.id IS NOT NULL OR t.id IS NOT NULL$sql$, VARIADIC v_tables) INTO v_known USING v_customer_id, v_id;
  ELSE
    SELECT json_agg(json_build_array(g.customer_id, g.id, i.summary, coalesce(i.observed_at, t.observed_at), CASE WHEN i.id IS NOT NULL THEN l.claim END))
    FROM unnest(v_customer_id, v_id) WITH ORDINALITY AS g (customer_id, id, place) LEFT JOIN LATERAL (SELECT * FROM fatura.invoices WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) i ON true
    LEFT JOIN LATERAL (SELECT * FROM fatura.links WHERE customer_id = g.customer_id AND invoice_id = g.id OFFSET 0) l ON true LEFT JOIN LATERAL (SELECT * FROM fatura.tombstones WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) t ON true
    WHERE i.id IS NOT NULL OR t.id IS NOT NULL INTO v_known;
  END IF;
  RETURN coalesce(v_known, '[]');
END $body$;

CREATE OR REPLACE FUNCTION fatura.save_invoices(p_customer_id text, p_is_spread boolean, given_customer_id text, given_id text, given_issued_at text, given_status text, given_ix_status text, given_party_id text, given_party text, given_own_text text, given_summary text, given_observed_at text, given_lines text, given_state text, given_claimed_id text, given_ix_id text, given_claim text) RETURNS json LANGUAGE plpgsql SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $body$
DECLARE
  v_tables text[];
  v_customer_id text[] := given_customer_id; v_id text[] := given_id; v_issued_at bigint[] := given_issued_at; v_status text[] := given_status; v_ix_status text[] := given_ix_status; v_party_id bigint[] := given_party_id; v_party text[] := CASE given_party WHEN '' THEN ARRAY[''] ELSE string_to_array(given_party, E'\r', E'\f') END; v_own_text text[] := CASE given_own_text WHEN '' THEN ARRAY[''] ELSE string_to_array(given_own_text, E'\r', E'\f') END; v_summary text[] := CASE given_summary WHEN '' THEN ARRAY[''] ELSE string_to_array(given_summary, E'\r', E'\f') END; v_observed_at bigint[] := given_observed_at; v_lines text[] := CASE given_lines WHEN '' THEN ARRAY[''] ELSE string_to_array(given_lines, E'\r', E'\f') END; v_state text[] := given_state; v_claimed_id bigint[] := given_claimed_id; v_ix_id bigint[] := given_ix_id; v_claim text[] := CASE given_claim WHEN '' THEN ARRAY[''] ELSE string_to_array(given_claim, E'\r', E'\f') END;
  v_issued_before bigint[]; v_party_before bigint[]; v_is_new boolean[]; v_is_seen boolean[]; v_is_other boolean[];
  v_has_other_lines boolean[]; v_is_fresh boolean[]; v_customer text; v_party_left bigint; v_invoice text;
BEGIN
  IF p_is_spread THEN
    v_tables := ARRAY(
      SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
      FROM unnest(ARRAY['fatura.invoices', 'fatura.invoice_lines', 'fatura.parties', 'fatura.links']) WITH ORDINALITY AS t (name, place)
      ORDER BY t.place);
  END IF;
  IF p_is_spread THEN
    EXECUTE format($sql$
    SELECT array_agg(issued_at), array_agg(party_id), array_agg(is_new), array_agg(is_fresh),
      array_agg(is_fresh AND is_alike AND is_older), array_agg(is_fresh AND NOT is_alike AND NOT is_new),
      array_agg(is_fresh AND has_other_lines)
    FROM (
      SELECT i.issued_at, i.party_id, i.id IS NULL AS is_new, coalesce(i.observed_at <= g.observed_at, true) AS is_fresh,
        i.observed_at < g.observed_at AS is_older, l.lines IS DISTINCT FROM g.lines AS has_other_lines,
        i.id IS NOT NULL AND i.summary = g.summary AND i.party_id = g.party_id AND i.own_text = convert_to(g.own_text, 'UTF8')
          AS is_alike
      FROM unnest($1, $2, $3, $4, $5, $6, $7) WITH ORDINALITY AS g (customer_id, id, party_id, own_text, summary, observed_at, lines, place)
      LEFT JOIN LATERAL (SELECT * FROM %1$s WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) i ON true LEFT JOIN LATERAL (SELECT * FROM %2$s WHERE customer_id = g.customer_id AND invoice_id = g.id OFFSET 0) l ON true
      ORDER BY g.place) found$sql$, VARIADIC v_tables) INTO v_issued_before, v_party_before, v_is_new, v_is_fresh, v_is_seen, v_is_other, v_has_other_lines USING v_customer_id, v_id, v_party_id, v_own_text, v_summary, v_observed_at, v_lines;
  ELSE
    SELECT array_agg(issued_at), array_agg(party_id), array_agg(is_new), array_agg(is_fresh),
      array_agg(is_fresh AND is_alike AND is_older), array_agg(is_fresh AND NOT is_alike AND NOT is_new),
      array_agg(is_fresh AND has_other_lines)
    FROM (
      SELECT i.issued_at, i.party_id, i.id IS NULL AS is_new, coalesce(i.observed_at <= g.observed_at, true) AS is_fresh,
        i.observed_at < g.observed_at AS is_older, l.lines IS DISTINCT FROM g.lines AS has_other_lines,
        i.id IS NOT NULL AND i.summary = g.summary AND i.party_id = g.party_id AND i.own_text = convert_to(g.own_text, 'UTF8')
          AS is_alike
      FROM unnest(v_customer_id, v_id, v_party_id, v_own_text, v_summary, v_observed_at, v_lines) WITH ORDINALITY AS g (customer_id, id, party_id, own_text, summary, observed_at, lines, place)
      LEFT JOIN LATERAL (SELECT * FROM fatura.invoices WHERE customer_id = g.customer_id AND id = g.id OFFSET 0) i ON true LEFT JOIN LATERAL (SELECT * FROM fatura.invoice_lines WHERE customer_id = g.customer_id AND invoice_id = g.id OFFSET 0) l ON true
      ORDER BY g.place) found INTO v_issued_before, v_party_before, v_is_new, v_is_fresh, v_is_seen, v_is_other, v_has_other_lines;
  END IF;
  IF true = ANY (v_is_seen) THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %1$s (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_seen, place) WHERE g.is_seen
      ON CONFLICT (customer_id, id) DO UPDATE SET observed_at = excluded.observed_at$sql$, VARIADIC v_tables) USING v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_seen;
  ELSE
    INSERT INTO fatura.invoices (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest(v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_seen) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_seen, place) WHERE g.is_seen
      ON CONFLICT (customer_id, id) DO UPDATE SET observed_at = excluded.observed_at;
  END IF;
  END IF;
  IF true = ANY (v_is_new || v_is_other) THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %3$s (customer_id, party_id, text)
      SELECT DISTINCT ON (g.customer_id, g.party_id) g.customer_id, g.party_id, g.party FROM unnest($1, $2, $3, $4, $5, $6) WITH ORDINALITY AS g (customer_id, party_id, party, party_before, is_new, is_other, place)
      WHERE (g.is_new OR g.is_other) AND g.party_before IS DISTINCT FROM g.party_id ORDER BY g.customer_id, g.party_id
      ON CONFLICT DO NOTHING$sql$, VARIADIC v_tables) USING v_customer_id, v_party_id, v_party, v_party_before, v_is_new, v_is_other;
  ELSE
    INSERT INTO fatura.parties (customer_id, party_id, text)
      SELECT DISTINCT ON (g.customer_id, g.party_id) g.customer_id, g.party_id, g.party FROM unnest(v_customer_id, v_party_id, v_party, v_party_before, v_is_new, v_is_other) WITH ORDINALITY AS g (customer_id, party_id, party, party_before, is_new, is_other, place)
      WHERE (g.is_new OR g.is_other) AND g.party_before IS DISTINCT FROM g.party_id ORDER BY g.customer_id, g.party_id
      ON CONFLICT DO NOTHING;
  END IF;
  END IF;
  IF true = ANY (v_is_new) THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %1$s (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_new, place) WHERE g.is_new$sql$, VARIADIC v_tables) USING v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_new;
  ELSE
    INSERT INTO fatura.invoices (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest(v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_new) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_new, place) WHERE g.is_new;
  END IF;
  END IF;
  IF true = ANY (v_is_other) THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %1$s (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_other, place) WHERE g.is_other
      ON CONFLICT (customer_id, id) DO UPDATE SET
        issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
        party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
        observed_at = excluded.observed_at$sql$, VARIADIC v_tables) USING v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_other;
  ELSE
    INSERT INTO fatura.invoices (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
      SELECT g.customer_id, g.id, g.issued_at, g.status, g.ix_status, g.party_id, convert_to(g.own_text, 'UTF8'), g.summary, g.observed_at FROM unnest(v_customer_id, v_id, v_issued_at, v_status, v_ix_status, v_party_id, v_own_text, v_summary, v_observed_at, v_is_other) WITH ORDINALITY AS g (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at, is_other, place) WHERE g.is_other
      ON CONFLICT (customer_id, id) DO UPDATE SET
        issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
        party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
        observed_at = excluded.observed_at;
  END IF;
  END IF;
  FOR v_customer, v_party_left IN
    SELECT DISTINCT c.customer_id, c.party_before
    FROM unnest(v_customer_id, v_party_id, v_party_before, v_is_other) AS c (customer_id, party_id, party_before, is_other)
    WHERE c.is_other AND c.party_before <> c.party_id
  LOOP
    IF p_is_spread THEN
    EXECUTE format($sql$
      DELETE FROM %3$s y WHERE y.customer_id = $1 AND y.party_id = $2
        AND NOT EXISTS (SELECT FROM %1$s i
          WHERE i.customer_id = $1 AND i.party_id = $2)$sql$, VARIADIC v_tables) USING v_customer, v_party_left;
  ELSE
    DELETE FROM fatura.parties y WHERE y.customer_id = v_customer AND y.party_id = v_party_left
        AND NOT EXISTS (SELECT FROM fatura.invoices i
          WHERE i.customer_id = v_customer AND i.party_id = v_party_left);
  END IF;
  END LOOP;
  IF true = ANY (v_has_other_lines) THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %2$s (customer_id, invoice_id, lines)
      SELECT g.customer_id, g.id, g.lines FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS g (customer_id, id, lines, has_other_lines, place) WHERE g.has_other_lines AND g.lines IS NOT NULL
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines$sql$, VARIADIC v_tables) USING v_customer_id, v_id, v_lines, v_has_other_lines;
  ELSE
    INSERT INTO fatura.invoice_lines (customer_id, invoice_id, lines)
      SELECT g.customer_id, g.id, g.lines FROM unnest(v_customer_id, v_id, v_lines, v_has_other_lines) WITH ORDINALITY AS g (customer_id, id, lines, has_other_lines, place) WHERE g.has_other_lines AND g.lines IS NOT NULL
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines;
  END IF;
    FOR v_customer, v_invoice IN
      SELECT c.customer_id, c.id FROM unnest(v_customer_id, v_id, v_lines, v_has_other_lines)
        AS c (customer_id, id, lines, has_other_lines)
      WHERE c.has_other_lines AND c.lines IS NULL
    LOOP
      IF p_is_spread THEN
    EXECUTE format($sql$
        DELETE FROM %2$s l
        WHERE l.customer_id = $1 AND l.invoice_id = $2$sql$, VARIADIC v_tables) USING v_customer, v_invoice;
  ELSE
    DELETE FROM fatura.invoice_lines l
        WHERE l.customer_id = v_customer AND l.invoice_id = v_invoice;
  END IF;
    END LOOP;
  END IF;
  IF v_claim IS NOT NULL THEN
    IF p_is_spread THEN
    EXECUTE format($sql$
      INSERT INTO %4$s AS stored (customer_id, invoice_id, state, claimed_id, ix_id, claim)
      SELECT g.customer_id, g.id, g.state, g.claimed_id, g.ix_id, g.claim FROM unnest($1, $2, $3, $4, $5, $6, $7) WITH ORDINALITY AS g (customer_id, id, state, claimed_id, ix_id, claim, is_fresh, place)
      WHERE g.is_fresh AND g.claim IS NOT NULL
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
        ix_id = excluded.ix_id, claim = excluded.claim
        WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id$sql$, VARIADIC v_tables) USING v_customer_id, v_id, v_state, v_claimed_id, v_ix_id, v_claim, v_is_fresh;
  ELSE
    INSERT INTO fatura.links AS stored (customer_id, invoice_id, state, claimed_id, ix_id, claim)
      SELECT g.customer_id, g.id, g.state, g.claimed_id, g.ix_id, g.claim FROM unnest(v_customer_id, v_id, v_state, v_claimed_id, v_ix_id, v_claim, v_is_fresh) WITH ORDINALITY AS g (customer_id, id, state, claimed_id, ix_id, claim, is_fresh, place)
      WHERE g.is_fresh AND g.claim IS NOT NULL
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
        ix_id = excluded.ix_id, claim = excluded.claim
        WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id;
  END IF;
  END IF;
  RETURN (
    SELECT coalesce(json_agg(json_build_array(c.place, c.issued_before)), '[]')
    FROM unnest(v_issued_before, v_is_new, v_is_other, v_has_other_lines) WITH ORDINALITY
      AS c (issued_before, is_new, is_other, has_other_lines, place)
    WHERE c.is_new OR c.is_other OR c.has_other_lines);
END $body$;

CREATE OR REPLACE FUNCTION fatura.count_customers(p_customer_id text, p_is_spread boolean, given_customers text, given_now bigint)
RETURNS json LANGUAGE plpgsql SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $body$
DECLARE v_tables text[]; v_customers text[] := given_customers; v_now bigint := given_now; v_large json;
BEGIN
  IF p_is_spread THEN
    v_tables := ARRAY(
      SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
      FROM unnest(ARRAY['fatura.customers', 'fatura.invoices']) WITH ORDINALITY AS t (name, place)
      ORDER BY t.place);
  END IF;
  IF p_is_spread THEN
    EXECUTE format($sql$
    WITH counted AS (
      INSERT INTO %1$s AS stored (customer_id, version, total, head)
      SELECT changed.customer_id, $2,
        (SELECT count(*) FROM %2$s i WHERE i.customer_id = changed.customer_id),
        coalesce((
  SELECT string_agg(newest.summary, ',') FROM (
    SELECT summary FROM %2$s WHERE customer_id = changed.customer_id
    ORDER BY issued_at DESC, id DESC LIMIT 10) newest), '')
      FROM unnest($1) AS changed (customer_id)
      ON CONFLICT (customer_id) DO UPDATE SET
        version = greatest(stored.version + 1, excluded.version::bigint), total = excluded.total, head = excluded.head
      RETURNING stored.customer_id, stored.total)
    SELECT json_agg(customer_id) FROM counted WHERE total > 500$sql$, VARIADIC v_tables) INTO v_large USING v_customers, v_now;
  ELSE
    WITH counted AS (
      INSERT INTO fatura.customers AS stored (customer_id, version, total, head)
      SELECT changed.customer_id, v_now,
        (SELECT count(*) FROM fatura.invoices i WHERE i.customer_id = changed.customer_id),
        coalesce((
  SELECT string_agg(newest.summary, ',') FROM (
    SELECT summary FROM fatura.invoices WHERE customer_id = changed.customer_id
    ORDER BY issued_at DESC, id DESC LIMIT 10) newest), '')
      FROM unnest(v_customers) AS changed (customer_id)
      ON CONFLICT (customer_id) DO UPDATE SET
        version = greatest(stored.version + 1, excluded.version::bigint), total = excluded.total, head = excluded.head
      RETURNING stored.customer_id, stored.total)
    SELECT json_agg(customer_id) FROM counted WHERE total > 500 INTO v_large;
  END IF;
  RETURN coalesce(v_large, '[]');
END $body$;
