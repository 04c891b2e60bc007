/**
 * The search within a customer's invoices. What must hold of an invoice is written down as one condition, for just these
 * words and this customer's parties, and planned then: each word that it needs not look for makes every row cheaper.
 */
import { dayLength, everyDay, spans } from '../read-model/counting.ts'
import { keptWords, partInSql } from '../read-model/frequent-words.ts'
import { partyPart } from '../read-model/party-bits.ts'
import { groupsAtMost, leastSigned, signParts } from '../read-model/search-signs.ts'
import { longerWords, shortPartInSql, shortWords } from '../read-model/short-words.ts'
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

const signsWithGroup = `fatura.search_signs g WHERE g.customer_id = p_customer_id AND g.part = v_group >> 27 & ${signParts - 1}
            AND get_byte(g.bits, (v_group >> 3 & ${0xffffff}) % length(g.bits)) & (1 << (v_group & 7)) <> 0`

/** The statements are made of fixed text and of numbers: words and parties come in as values, and so show in no log. */
const sought = 'USING p_customer_id, v_words, v_holders'
const values = `${sought}, ${givenFilters}`

/** The words that not every party holds, the longest first: it is the rarest, most likely. And which parties hold each. */
const readWords = `
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

/** Up to this many that can hold the words, each one's text is taken out of its day. */
const takenOut = 16

/** A part of what is kept of a day's words. */
const partOfDay = 'FROM fatura.search_words w WHERE w.customer_id = $1 AND w.part = %s AND w.day = s.day'

/** The bits that follow a mark in a text, or nothing. */
const bitsAfter = (text: string, mark: string) =>
  `(''x'' || nullif(split_part(split_part(${text}, E''\\n'' || ${mark} || '':'', 2), E''\\n'', 1), ''''))::bit(%s)`

/**
 * Of each word: who is found by it, if it is frequent on that day, or short; else who has its first and last four letters, or can be
 * anyone. With all who are made out to a party that holds it. All as bits, of one length.
 */
const writeBits = `
      SELECT 8 * ((coalesce(max(k.n), 0) + 7) / 8) INTO v_bits FROM fatura.counts k
      WHERE k.customer_id = p_customer_id AND k.span = ${spans.day} AND k.status = '' AND k.ix = '';
      FOR v_at IN 1 .. cardinality(v_texts) LOOP
        v_word := v_texts[v_at];
        v_exact := NULL;
        v_possible := NULL;
        IF v_plain[v_at] AND v_word ~ '${keptWords}' THEN
          v_exact := format('(SELECT ${bitsAfter("convert_from(w.bits, ''UTF8'')", '$5[%s]')} ${partOfDay})',
            v_at, v_bits, ${partInSql('v_word')});
        END IF;
        SELECT string_agg(format('coalesce(${bitsAfter('k.lines', '$3[%s]')}, $6)', h, v_bits), ' | ') INTO v_theirs
        FROM generate_series(v_ends[v_at - 1] + 1, v_ends[v_at]) h;
        v_theirs := '(SELECT ' || v_theirs || format(
          ' FROM (SELECT convert_from(w.bits, ''UTF8'') AS lines ${partOfDay}) k WHERE k.lines <> '''')', ${partyPart});
        IF v_plain[v_at] AND v_ends[v_at] - v_ends[v_at - 1] <= ${countedApart} THEN
          IF v_word ~ '${shortWords}' THEN
            v_own := format('(SELECT fatura.find_short(w.bits, $5[%s], $6) ${partOfDay})', v_at, ${shortPartInSql('v_word')});
            v_exact := CASE WHEN v_theirs IS NULL OR length(v_word) = 1 THEN format('coalesce(%s, %s)', v_exact, v_own)
              ELSE format('coalesce(%s | %s, %s)', v_own, v_theirs, v_exact) END;
          ELSIF v_word ~ '${longerWords}' THEN
            v_own := format('(SELECT CASE WHEN f.bits = $6 THEN $6
              ELSE f.bits & (SELECT fatura.find_short(w.bits, left($5[%s], 4), $6) ${partOfDay}) END
              FROM (SELECT fatura.find_short(w.bits, right($5[%s], 4), $6) AS bits ${partOfDay} OFFSET 0) f)',
              v_at, ${shortPartInSql('left(v_word, 4)')}, v_at, ${shortPartInSql('right(v_word, 4)')});
            v_possible := format('CASE WHEN d.is_signed THEN %s END', replace(concat_ws(' | ', v_own, v_theirs), 's.day', 'd.day'));
            v_theirs := 'CASE WHEN ' || v_own || ' = $6 THEN ' || v_theirs || ' END';
            IF v_theirs IS NOT NULL THEN v_exact := format('coalesce(%s)', concat_ws(', ', v_theirs, v_exact)); END IF;
          END IF;
        END IF;
        v_each := concat_ws(', ', v_each, format('CASE WHEN s.is_signed THEN %s END AS b%s', coalesce(v_exact, 'NULL::varbit'), v_at));
        v_all := concat_ws(' & ', v_all, format('d.b%s', v_at));
        v_any := concat_ws(' & ', v_any, format('coalesce(d.b%s, %s, ~ $6)', v_at, coalesce(v_possible, 'NULL')));
      END LOOP;`

/**
 * The same for a customer with counters: each day's texts lie in one row, and are counted there; then the rows of those days
 * are read in which the page lies.
 * Only days are looked through whose signs have the words' groups of letters, or that have no signs; and none of which bits tell who is
 * found. Where a day lacks a word that only parties hold which hold all words, those count alone.
 */
const findInDays = `
      IF cardinality(v_free) <= ${countedApart} THEN
        SELECT string_agg(format('position($2[%s] IN e.joined) = 0', n), ' OR ') INTO v_lacks
        FROM generate_series(1, cardinality(v_words)) n
        WHERE octet_length(v_words[n]) >= ${longWord} AND v_ends[n] - v_ends[n - 1] = cardinality(v_free);
        SELECT string_agg(format('cardinality(array_positions(e.parties, %s))', f.party_id), ' + ') INTO v_of_free
        FROM unnest(v_free) f (party_id);
      END IF;
      -- A word that a party holds is on all days of the party: signs tell nothing of it.
      FOR v_group IN
        SELECT p_groups[n][1] FROM generate_series(1, array_length(p_groups, 1)) n
        WHERE p_groups[n][2] <> ALL (v_held) ORDER BY n LIMIT ${groupsAtMost}
      LOOP
        EXIT WHEN cardinality(v_signed) <= ${worthReading};
        v_signed := CASE WHEN v_signed IS NULL
          THEN ARRAY(SELECT g.day FROM ${signsWithGroup})
          ELSE ARRAY(SELECT d.day FROM unnest(v_signed) d (day) WHERE (SELECT true FROM ${signsWithGroup} AND g.day = d.day)) END;
      END LOOP;
      IF v_signed IS NOT NULL THEN
        v_signed := v_signed || ARRAY(
          SELECT k.start FROM fatura.counts k
          WHERE k.customer_id = p_customer_id AND k.span = ${spans.day} AND k.status = '' AND k.ix = '' AND k.n < ${leastSigned})
          || ARRAY(SELECT s.day FROM fatura.search_days s WHERE s.customer_id = p_customer_id AND NOT s.is_signed);
      END IF;
      ${writeBits}
      EXECUTE format('SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) FROM (
        SELECT e.day, CASE
          WHEN e.exact IS NOT NULL THEN bit_count(e.exact)
          WHEN bit_count(e.possible) = 0 THEN 0
          WHEN bit_count(e.possible) <= ${takenOut} THEN (
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
        coalesce(p_from / ${dayLength}, ${everyDay.first}), coalesce(p_before / ${dayLength}, ${everyDay.end}),
        CASE WHEN v_signed IS NOT NULL THEN ' AND s.day = ANY ($4)' END)
      INTO v_days, v_ns, total ${sought}, v_signed, v_texts, ('x' || repeat('00', v_bits / 8))::varbit;
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
    p_groups integer[], ${page}, OUT version bigint)
  ${attributes} AS $body$
  DECLARE
    v_parties bigint; v_word text; v_alternative text; v_of bigint[]; v_free bigint[];
    v_words bytea[] := '{}'; v_holders bigint[] := '{}'; v_ends integer[] := '[0:0]={0}';
    v_condition text; v_found text; v_lacks text; v_of_free text; v_ids text[]; v_left bigint; v_in_days boolean;
    v_days integer[]; v_ns bigint[]; v_group integer; v_signed integer[];
    v_place integer; v_held integer[] := '{}'; v_plain boolean[] := '{}'; v_texts text[] := '{}'; v_bits integer;
    v_exact text; v_possible text; v_own text; v_theirs text; v_each text; v_all text; v_any text;
  BEGIN
    ${readWords};
    IF cardinality(v_words) = 0 THEN
      SELECT l.total, l.page, l.summaries, l.version INTO total, page, summaries, version
      FROM fatura.list_invoices(${given}) l;
      RETURN;
    END IF;
    SELECT c.version, c.counted AND NOT ${isMoreThanDays} INTO version, v_in_days
    FROM fatura.customers c WHERE c.customer_id = p_customer_id;
    ${writeCondition};
    IF v_in_days THEN ${findInDays}
    ELSE ${findInRows}
    END IF;
    ${readSummaries};
  END $body$;`
