/** The search within a customer's invoices. */
import { dayLength, everyDay } from '../read-model/counting.ts'
import {
  attributes,
  clampPage,
  filters,
  given,
  inOrder,
  matching,
  ofDays,
  page,
  readSummaries,
} from './function-parts.ts'

/** So many are taken down on the way; what follows them is only counted. */
const foundAtOnce = 1_000

/** Up to so many parties are held in arrays; of more, each invoice's is looked up. */
const partiesAtMost = 64

/** Up to so many words have variables of their own; a search over HTTP has no more. */
const wordsAtMost = 10

/**
 * Finds by one pass over the narrow index, which holds the invoices' own texts. The first ones are taken down on the way,
 * the others counted; a page further on is skipped to from the nearer end.
 */
function findPage(condition: string, filtered = matching): string {
  const found = `FROM fatura.invoices i WHERE ${filtered}
          AND ${condition}`
  const skipTo = (order: string, limit: string, offset: string) => `
          SELECT i.id, i.issued_at ${found}
          ${order} LIMIT ${limit} OFFSET ${offset}`
  return `
      v_ids := ARRAY(SELECT i.id ${found} ${inOrder} LIMIT ${foundAtOnce + 1});
      total := cardinality(v_ids);
      IF total > ${foundAtOnce} THEN
        SELECT i.issued_at INTO v_last FROM fatura.invoices i WHERE i.customer_id = p_customer_id AND i.id = v_ids[total];
        SELECT total + count(*) INTO total ${found} AND (i.issued_at, i.id) < (v_last, v_ids[${foundAtOnce + 1}]);
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

/**
 * The same for a customer with counters: each day's texts lie in one row, and are counted there; then the rows of those days
 * are read in which the page lies. A word that is long is mostly rare: where a day lacks it, only its parties count.
 */
function findInDays(condition: string, columns: string, ofParties = '0'): string {
  return `
      SELECT array_agg(q.day), array_agg(q.n), coalesce(sum(q.n), 0) INTO v_days, v_ns, total FROM (
        SELECT s.day, CASE WHEN octet_length(v_word) > 4 AND position(v_word IN s.joined) = 0 THEN ${ofParties}
          ELSE (SELECT count(*) FROM (SELECT ${columns}) i WHERE ${condition}) END AS n
        FROM fatura.search_days s
        WHERE s.customer_id = p_customer_id AND s.day >= coalesce(p_from / ${dayLength}, ${everyDay.first})
          AND s.day < coalesce(p_before / ${dayLength}, ${everyDay.end})
        ORDER BY s.day DESC OFFSET 0) q
      WHERE q.n > 0;
      ${clampPage};
      v_left := (page - 1) * p_page_size;
      v_ids := '{}';
      FOR v_at IN 1 .. coalesce(cardinality(v_days), 0) LOOP
        EXIT WHEN cardinality(v_ids) >= p_page_size;
        IF v_left >= v_ns[v_at] THEN
          v_left := v_left - v_ns[v_at];
        ELSE
          v_ids := v_ids || ARRAY(
            SELECT i.id FROM fatura.invoices i
            WHERE i.customer_id = p_customer_id AND i.issued_at >= v_days[v_at]::bigint * ${dayLength}
              AND i.issued_at < (v_days[v_at] + 1)::bigint * ${dayLength} AND ${condition}
            ${inOrder} LIMIT p_page_size - cardinality(v_ids) OFFSET v_left);
          v_left := 0;
        END IF;
      END LOOP;`
}

const [texts, textsAndParties] = [
  'unnest(s.texts) AS own_text',
  'unnest(s.texts) AS own_text, unnest(s.parties) AS party_id',
]

/** How many invoices of a day are of parties that hold all words. */
const ofFreeParties =
  '(SELECT coalesce(sum(cardinality(array_positions(s.parties, f.party_id))), 0) FROM unnest(v_free) f (party_id))'

const holds = (word: string) => `position(${word} IN i.own_text) > 0`

/** Whether a word, or its alternative, is in a party's text. */
const partyHolds = (word: string, alternative: string) =>
  `(strpos(y.text, ${word}) > 0 OR strpos(y.text, coalesce(${alternative}, ${word})) > 0)`

/** The words that a party leaves to be found in the own text, the longest first: it is the rarest, most likely. */
const readLefts = `
    SELECT array_agg(q.party_id), array_agg(q.words) INTO v_parties, v_lefts FROM (
      SELECT y.party_id, (
        SELECT coalesce(string_agg(w.word, E'\\n' ORDER BY length(w.word) DESC, w.word), '')
        FROM unnest(p_words, p_alternatives) w (word, alternative)
        WHERE NOT ${partyHolds('w.word', 'w.alternative')}
      ) AS words
      FROM fatura.parties y WHERE y.customer_id = p_customer_id LIMIT ${partiesAtMost + 1}) q`

/** Of each party, the n-th of the words that it leaves and that not all leave. */
const readOther = (n: number) => `ARRAY(
        SELECT convert_to(coalesce((
          SELECT array_agg(w.word ORDER BY length(w.word) DESC)
          FROM string_to_table(u.words, E'\\n') w (word) WHERE w.word <> ALL (v_needed))[${n}], ''), 'UTF8')
        FROM unnest(v_lefts) WITH ORDINALITY u (words, place) ORDER BY u.place)`

/** The n-th of the words that are left by every party that leaves any. */
const needed = (n: number) => `convert_to(coalesce(v_needed[${n}], ''), 'UTF8')`

/** As many variables as a search has words: to hold them in an array would cost more at each row than to look for them. */
const neededWords = ['v_word', ...Array.from({ length: wordsAtMost - 1 }, (_, n) => `v_word_${n + 2}`)]
const [first3, further] = [neededWords.slice(0, 3), neededWords.slice(3)]

/** Few searches have more than three words, so that these are passed over together. */
const holdsNeeded = `${first3.map(holds).join(' AND ')}
            AND (v_needs_3 OR ${further.map(holds).join(' AND ')})`

/**
 * Most rows are decided by the party, when its text holds all words, or by the words that all other parties leave. Only what
 * passes is looked at with the words of its own party: an array costs at each row more than a look into the text.
 */
const ofFewParties = `(i.party_id = v_party OR v_is_free AND i.party_id = ANY (v_free)
            OR ${holdsNeeded} AND (v_is_all
              OR ${holds('v_others[array_position(v_parties, i.party_id)]')}
                AND ${holds('v_further[array_position(v_parties, i.party_id)]')}
                AND (v_leaves_2 OR NOT EXISTS (
                  SELECT FROM string_to_table(v_lefts[array_position(v_parties, i.party_id)], E'\\n') w (word)
                  WHERE NOT ${holds("convert_to(w.word, 'UTF8')")}))))`

const ofManyParties = `EXISTS (
            SELECT FROM fatura.parties y WHERE y.customer_id = p_customer_id AND y.party_id = i.party_id
              AND (${holds('v_word')} OR ${partyHolds('p_words[1]', 'p_alternatives[1]')})
              AND (cardinality(p_words) < 2 OR NOT EXISTS (
                SELECT FROM unnest(p_words, p_alternatives) w (word, alternative)
                WHERE NOT ${holds("convert_to(w.word, 'UTF8')")} AND NOT ${partyHolds('w.word', 'w.alternative')})))`

export const searchInvoices = `
  CREATE FUNCTION fatura.search_invoices(${filters}, p_words text[], p_alternatives text[],
    ${page}, OUT version bigint, OUT synced_at bigint)
  ${attributes} AS $body$
  DECLARE
    v_parties bigint[]; v_lefts text[]; v_free bigint[]; v_party bigint; v_is_free boolean; v_needed text[];
    ${neededWords.map(name => `${name} bytea;`).join(' ')}
    v_needs_3 boolean; v_others bytea[]; v_further bytea[]; v_fits boolean; v_is_all boolean; v_leaves_2 boolean;
    v_ids text[]; v_left bigint; v_last bigint; v_in_days boolean; v_days integer[]; v_ns bigint[];
  BEGIN
    ${readLefts};
    IF '' = ALL (v_lefts) AND cardinality(v_parties) <= ${partiesAtMost} THEN
      SELECT l.total, l.page, l.summaries, l.version, l.synced_at INTO total, page, summaries, version, synced_at
      FROM fatura.list_invoices(${given}) l;
      RETURN;
    END IF;
    SELECT c.version, f.synced_at, c.counted AND num_nonnulls(p_status, p_ix_status) = 0
    INTO version, synced_at, v_in_days
    FROM fatura.freshness f LEFT JOIN fatura.customers c ON c.customer_id = p_customer_id;
    IF cardinality(v_parties) > ${partiesAtMost} THEN
      v_word := convert_to(p_words[1], 'UTF8'); ${findPage(ofManyParties)}
    ELSE
      v_free := ARRAY(SELECT u.party_id FROM unnest(v_parties, v_lefts) u (party_id, words) WHERE u.words = '');
      v_party := v_free[1];
      v_is_free := cardinality(v_free) > 1;
      v_needed := ARRAY(
        SELECT DISTINCT w.word FROM unnest(p_words) w (word) WHERE NOT EXISTS (
          SELECT FROM unnest(v_lefts) u (words) WHERE u.words <> '' AND w.word <> ALL (string_to_array(u.words, E'\\n'))));
      v_needed := ARRAY(SELECT w.word FROM unnest(v_needed) w (word) ORDER BY length(w.word) DESC);
      ${neededWords.map((name, n) => `${name} := ${needed(n + 1)};`).join('\n      ')}
      v_needs_3 := cardinality(v_needed) <= 3;
      v_fits := cardinality(v_needed) <= ${wordsAtMost};
      SELECT v_fits AND coalesce(max(q.others), 0) = 0, v_fits AND coalesce(max(q.others), 0) <= 2
      INTO v_is_all, v_leaves_2 FROM (
        SELECT count(*) AS others FROM unnest(v_lefts) WITH ORDINALITY u (words, place), string_to_table(u.words, E'\\n') w (word)
        WHERE u.words <> '' AND w.word <> ALL (v_needed) GROUP BY u.place) q;
      v_others := ${readOther(1)};
      v_further := ${readOther(2)};
      IF v_in_days AND v_is_all AND num_nonnulls(v_party, v_needed[2]) = 0 THEN ${findInDays(holds('v_word'), texts)}
      ELSIF v_in_days AND v_is_all AND v_party IS NULL THEN ${findInDays(holdsNeeded, texts)}
      ELSIF v_in_days THEN ${findInDays(ofFewParties, textsAndParties, ofFreeParties)}
      ELSIF v_is_all AND num_nonnulls(v_party, v_needed[2], p_status, p_ix_status) = 0 THEN ${findPage(holds('v_word'), ofDays)}
      ELSIF v_is_all AND v_party IS NULL THEN ${findPage(holdsNeeded)}
      ELSE ${findPage(ofFewParties)}
      END IF;
    END IF;
    ${readSummaries};
  END $body$;`
