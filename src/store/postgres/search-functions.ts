/**
 * The search within a customer's invoices. What must hold of an invoice is written down as one condition, for just these
 * words and this customer's parties, and planned then: each word that it needs not look for makes every row cheaper.
 */
import { dayLength, everyDay } from '../read-model/counting.ts'
import { keptWords, partInSql } from '../read-model/frequent-words.ts'
import { signParts } from '../read-model/search-signs.ts'
import {
  attributes,
  clampPage,
  filters,
  given,
  givenFilters,
  inOrder,
  isMoreThanDays,
  matchingFrom,
  page,
  readSummaries,
} from './function-parts.ts'

/** How many are noted on the way; those that follow are only counted. */
const foundAtOnce = 1_000

/** A word of this many bytes is mostly rare: it is worth looking first whether a day holds it at all. */
const longWord = 5

/** Up to this many parties are counted one by one among a day's. */
const countedApart = 4

/** This few days are read faster than they are told apart further. */
const worthReading = 4

const signsWithGroup = `fatura.search_signs g WHERE g.customer_id = p_customer_id
            AND g.part = v_group >> 27 & ${signParts - 1} AND get_bit(g.bits, v_group & (8 * length(g.bits) - 1)) = 1`

/** The statements are made of fixed text and of numbers: words and parties come in as values, and so show in no log. */
const sought = 'USING p_customer_id, v_words, v_holders'
const values = `${sought}, ${givenFilters}`

/** The words that not every party holds, the longest first: it is the rarest, most likely. And which parties hold each. */
const readWords = `
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
      v_marks := array_append(v_marks, CASE WHEN v_word = v_alternative AND v_word ~ '${keptWords}' THEN E'\\n' || v_word || ':' END);
      v_parts := v_parts || (${partInSql('v_word')});
    END LOOP`

/** Of an invoice: each word is in its own text, or in its party's. */
const writeCondition = `
    SELECT string_agg(format('(%s position($2[%s] IN i.own_text) > 0)', CASE v_ends[n] - v_ends[n - 1]
        WHEN 0 THEN ''
        WHEN 1 THEN format('i.party_id = $3[%s] OR', v_ends[n])
        ELSE format('i.party_id = ANY ($3[%s:%s]) OR', v_ends[n - 1] + 1, v_ends[n]) END, n), ' AND ' ORDER BY n)
    INTO v_condition FROM generate_series(1, cardinality(v_words)) n`

/**
 * One pass over the narrow index, which holds the invoices' own texts. The first ones are taken down on the way, the others
 * counted; a page further on is skipped to from the nearer end.
 */
const findInRows = `
      v_found := 'FROM fatura.invoices i WHERE ${matchingFrom(4)} AND ' || v_condition;
      EXECUTE 'SELECT ARRAY(SELECT i.id ' || v_found || ' ${inOrder} LIMIT ${foundAtOnce + 1})' INTO v_ids
      ${values};
      total := cardinality(v_ids);
      IF total > ${foundAtOnce} THEN
        EXECUTE 'SELECT count(*) ' || v_found INTO total ${values};
      END IF;
      ${clampPage};
      v_left := (page - 1) * p_page_size;
      IF v_left + p_page_size <= ${foundAtOnce} OR total <= ${foundAtOnce} THEN
        v_ids := v_ids[v_left + 1 : v_left + p_page_size];
      ELSIF v_left < total / 2 THEN
        EXECUTE format('SELECT ARRAY(SELECT i.id %s ${inOrder} LIMIT %s OFFSET %s)', v_found, p_page_size, v_left)
        INTO v_ids ${values};
      ELSE
        EXECUTE format('SELECT ARRAY(SELECT r.id FROM (
          SELECT i.id, i.issued_at %s ORDER BY i.issued_at, i.id LIMIT %s OFFSET %s) r ORDER BY r.issued_at DESC, r.id DESC)',
          v_found, least(p_page_size, total - v_left), greatest(0, total - v_left - p_page_size))
        INTO v_ids ${values};
      END IF;`

/**
 * The same for a customer with counters: each day's texts lie in one row, and are counted there; then the rows of those days
 * are read in which the page lies.
 * Only days are looked through whose signs have the words' groups of letters, and none that keeps the bits of each word. Where a day lacks a word that only parties hold which hold all words, those count alone.
 */
const findInDays = `
      IF cardinality(v_free) <= ${countedApart} THEN
        SELECT string_agg(format('position($2[%s] IN s.joined) = 0', n), ' OR ') INTO v_lacks
        FROM generate_series(1, cardinality(v_words)) n
        WHERE octet_length(v_words[n]) >= ${longWord} AND v_ends[n] - v_ends[n - 1] = cardinality(v_free);
        SELECT string_agg(format('cardinality(array_positions(s.parties, %s))', f.party_id), ' + ') INTO v_of_free
        FROM unnest(v_free) f (party_id);
      END IF;
      IF array_position(v_marks, NULL) IS NULL THEN
        SELECT string_agg(format('(SELECT (''x'' || nullif(split_part(split_part(convert_from(g.bits, ''UTF8''), $5[%s], 2),
          E''\\n'', 1), ''''))::varbit FROM fatura.search_signs g WHERE g.customer_id = $1 AND g.part = %s AND g.first = s.day)',
          n, v_parts[n]), ' & ')
        INTO v_frequent FROM generate_series(1, cardinality(v_marks)) n;
      END IF;
      FOREACH v_group IN ARRAY p_groups LOOP
        EXIT WHEN cardinality(v_signed) <= ${worthReading};
        v_signed := CASE WHEN v_signed IS NULL
          THEN ARRAY(SELECT g.first FROM ${signsWithGroup})
          ELSE ARRAY(SELECT d.first FROM unnest(v_signed) d (first) WHERE (SELECT true FROM ${signsWithGroup} AND g.first = d.first)) END;
      END LOOP;
      EXECUTE format('SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) FROM (
        SELECT s.day, coalesce(bit_count(%s), CASE WHEN %s THEN %s ELSE (
          SELECT count(*) FROM (SELECT unnest(s.texts) AS own_text%s) i WHERE %s) END) AS n
        FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day >= %s AND s.day < %s%s
        ORDER BY s.day DESC OFFSET 0) q WHERE q.n > 0',
        coalesce(v_frequent, 'NULL::varbit'), coalesce(v_lacks, 'false'), coalesce(v_of_free, '0'),
        CASE WHEN cardinality(v_holders) > 0 THEN ', unnest(s.parties) AS party_id' END, v_condition,
        coalesce(p_from / ${dayLength}, ${everyDay.first}), coalesce(p_before / ${dayLength}, ${everyDay.end}),
        CASE WHEN v_signed IS NOT NULL THEN ' AND s.day = ANY ($4)' END)
      INTO v_days, v_ns, total ${sought}, v_signed, v_marks;
      ${clampPage};
      v_left := (page - 1) * p_page_size;
      v_ids := '{}';
      FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
        EXIT WHEN cardinality(v_ids) >= p_page_size;
        IF v_left >= v_ns[v_at] THEN
          v_left := v_left - v_ns[v_at];
        ELSE
          EXECUTE format('SELECT $6 || ARRAY(
            SELECT i.id FROM fatura.invoices i WHERE i.customer_id = $1 AND i.issued_at >= $4 AND i.issued_at < $5 AND %s
            ${inOrder} LIMIT %s OFFSET %s)', v_condition, p_page_size - cardinality(v_ids), v_left)
          INTO v_ids ${sought}, v_days[v_at]::bigint * ${dayLength}, (v_days[v_at] + 1)::bigint * ${dayLength}, v_ids;
          v_left := 0;
        END IF;
      END LOOP;`

export const searchInvoices = `
  CREATE FUNCTION fatura.search_invoices(${filters}, p_words text[], p_alternatives text[],
    p_groups integer[], ${page}, OUT version bigint, OUT synced_at bigint)
  ${attributes} AS $body$
  DECLARE
    v_parties bigint; v_word text; v_alternative text; v_of bigint[]; v_free bigint[];
    v_words bytea[] := '{}'; v_holders bigint[] := '{}'; v_ends integer[] := '[0:0]={0}';
    v_condition text; v_found text; v_lacks text; v_of_free text; v_ids text[]; v_left bigint; v_in_days boolean;
    v_days integer[]; v_ns bigint[]; v_group integer; v_signed integer[];
    v_marks text[] := '{}'; v_parts integer[] := '{}'; v_frequent text;
  BEGIN
    ${readWords};
    IF cardinality(v_words) = 0 THEN
      SELECT l.total, l.page, l.summaries, l.version, l.synced_at INTO total, page, summaries, version, synced_at
      FROM fatura.list_invoices(${given}) l;
      RETURN;
    END IF;
    SELECT c.version, f.synced_at, c.counted AND NOT ${isMoreThanDays}
    INTO version, synced_at, v_in_days
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
    ${writeCondition};
    IF v_in_days THEN ${findInDays}
    ELSE ${findInRows}
    END IF;
    ${readSummaries};
  END $body$;`
