/** The search within a customer's invoices. */
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

export const searchInvoices = `
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
