/**
 * What writers call: what is known of a batch's invoices, what writes all of its rows, and what counts its customers. Each runs
 * where these rows lie, so that a batch is one message, on Citus one to each shard. They have no rights of their own.
 */
import { countedAbove, headSize } from '../read-model/counting.ts'

/**
 * The rows of one shard: statements name its tables, and Citus has nothing to plan. Of the shard, any customer tells. A
 * statement is planned for each batch: how many rows there are decides how they are found.
 */
const writing = (tables: readonly string[]) => ({
  attributes: 'LANGUAGE plpgsql SET search_path = pg_catalog',
  declare: `v_tables text[] := ARRAY[${tables.map(table => `'fatura.${table}'`).join(', ')}];`,
  begin: `
    IF p_is_spread THEN
      v_tables := ARRAY(
        SELECT shard_name(t.name::regclass, get_shard_id_for_distribution_column(t.name::regclass, p_customer_id))
        FROM unnest(v_tables) WITH ORDINALITY AS t (name, place) ORDER BY t.place);
    END IF;`,
})

/** What is given of each invoice: lists of one length, each as the text of an array, which is read where it is used. */
export const givenColumns = {
  customer_id: 'text',
  id: 'text',
  issued_at: 'bigint',
  status: 'text',
  ix_status: 'text',
  party_id: 'bigint',
  party: 'text',
  own_text: 'text',
  summary: 'text',
  observed_at: 'bigint',
  /** Null where the lines are not known. */
  lines: 'text',
  /** Null where nothing is claimed, and so are the next three. */
  state: 'text',
  claimed_id: 'bigint',
  ix_id: 'bigint',
  claim: 'text',
} as const

const names = Object.keys(givenColumns)
const rowColumns = [
  'customer_id',
  'id',
  'issued_at',
  'status',
  'ix_status',
  'party_id',
  'own_text',
  'summary',
  'observed_at',
]

/** Lists are read once: a statement would do it again to be planned. */
function readLists(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([name, type]) => `v_${name} ${type}[] := given_${name};`)
    .join(' ')
}

const parametersOf = (columns: readonly string[]) =>
  ['p_customer_id text, p_is_spread boolean', ...columns.map(name => `given_${name} text`)].join(', ')

const invoices = writing(['invoices', 'invoice_lines', 'parties', 'links'])
const [invoicesTable, linesTable, partiesTable, linksTable] = ['%1$s', '%2$s', '%3$s', '%4$s']

/** Runs a statement on these columns of what is given, and what was found of each; `g` names them. */
function execute(columns: readonly string[], statement: (given: string) => string, into = ''): string {
  const places = columns.map((_, i) => `$${i + 1}`).join(', ')
  const given = `unnest(${places}) WITH ORDINALITY AS g (${columns.join(', ')}, place)`
  return `EXECUTE format($sql$${statement(given)}$sql$, VARIADIC v_tables)${into}
    USING ${columns.map(name => `v_${name}`).join(', ')};`
}

/**
 * What was observed later than what is given stays as it is, its lines included; what is alike is only seen again. Tells of
 * each invoice that changed its place in what was given, and its moment before. The customers are locked.
 */
const saveInvoices = `
  CREATE FUNCTION fatura.save_invoices(${parametersOf(names)}) RETURNS json ${invoices.attributes} AS $body$
  DECLARE
    ${invoices.declare}
    ${readLists(givenColumns)}
    v_issued_before bigint[]; v_party_before bigint[]; v_is_seen boolean[]; v_is_other boolean[]; v_has_other_lines boolean[];
    v_is_fresh boolean[];
  BEGIN${invoices.begin}
    ${execute(
      ['customer_id', 'id', 'party_id', 'own_text', 'summary', 'observed_at', 'lines'],
      given => `
      SELECT array_agg(issued_at), array_agg(party_id), array_agg(is_fresh), array_agg(is_fresh AND is_alike AND is_older),
        array_agg(is_fresh AND NOT is_alike), array_agg(is_fresh AND has_other_lines)
      FROM (
        SELECT i.issued_at, i.party_id, coalesce(i.observed_at <= g.observed_at, true) AS is_fresh,
          i.observed_at < g.observed_at AS is_older, l.lines IS DISTINCT FROM g.lines AS has_other_lines,
          coalesce(i.summary = g.summary AND i.party_id = g.party_id AND i.own_text = convert_to(g.own_text, 'UTF8'), false)
            AS is_alike
        FROM ${given} LEFT JOIN ${invoicesTable} i ON i.customer_id = g.customer_id AND i.id = g.id
        LEFT JOIN ${linesTable} l ON l.customer_id = g.customer_id AND l.invoice_id = g.id
        ORDER BY g.place) found`,
      ' INTO v_issued_before, v_party_before, v_is_fresh, v_is_seen, v_is_other, v_has_other_lines',
    )}
    IF true = ANY (v_is_seen) THEN
      ${execute(
        ['customer_id', 'id', 'observed_at', 'is_seen'],
        given => `
        UPDATE ${invoicesTable} AS stored SET observed_at = g.observed_at FROM ${given}
        WHERE g.is_seen AND stored.customer_id = g.customer_id AND stored.id = g.id`,
      )}
    END IF;
    IF true = ANY (v_is_other) THEN
      ${execute(
        ['customer_id', 'party_id', 'party', 'party_before', 'is_other'],
        given => `
        INSERT INTO ${partiesTable} (customer_id, party_id, text)
        SELECT DISTINCT ON (g.customer_id, g.party_id) g.customer_id, g.party_id, g.party FROM ${given}
        WHERE g.is_other AND g.party_before IS DISTINCT FROM g.party_id ORDER BY g.customer_id, g.party_id
        ON CONFLICT DO NOTHING`,
      )}
      ${execute(
        [...rowColumns, 'is_other'],
        given => `
        INSERT INTO ${invoicesTable} (${rowColumns.join(', ')})
        SELECT ${rowColumns.map(name => (name === 'own_text' ? "convert_to(g.own_text, 'UTF8')" : `g.${name}`)).join(', ')}
        FROM ${given} WHERE g.is_other ORDER BY g.place
        ON CONFLICT (customer_id, id) DO UPDATE SET
          issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
          party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
          observed_at = excluded.observed_at`,
      )}
    END IF;
    IF v_party_before IS DISTINCT FROM array_fill(NULL::bigint, ARRAY[cardinality(v_id)]) THEN
      ${execute(
        ['customer_id', 'party_id', 'party_before', 'is_other'],
        given => `
        DELETE FROM ${partiesTable} y USING ${given}
        WHERE g.is_other AND g.party_before <> g.party_id
          AND y.customer_id = g.customer_id AND y.party_id = g.party_before AND NOT EXISTS (
          SELECT FROM ${invoicesTable} i WHERE i.customer_id = y.customer_id AND i.party_id = y.party_id)`,
      )}
    END IF;
    IF true = ANY (v_has_other_lines) THEN
      ${execute(
        ['customer_id', 'id', 'lines', 'has_other_lines'],
        given => `
        INSERT INTO ${linesTable} (customer_id, invoice_id, lines)
        SELECT g.customer_id, g.id, g.lines FROM ${given} WHERE g.has_other_lines AND g.lines IS NOT NULL
        ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines`,
      )}
      IF array_position(v_lines, NULL) IS NOT NULL THEN
        ${execute(
          ['customer_id', 'id', 'lines', 'has_other_lines'],
          given => `
          DELETE FROM ${linesTable} AS stored USING ${given}
          WHERE g.has_other_lines AND g.lines IS NULL AND stored.customer_id = g.customer_id AND stored.invoice_id = g.id`,
        )}
      END IF;
    END IF;
    IF v_claim IS DISTINCT FROM array_fill(NULL::text, ARRAY[cardinality(v_id)]) THEN
      ${execute(
        ['customer_id', 'id', 'state', 'claimed_id', 'ix_id', 'claim', 'is_fresh'],
        given => `
        INSERT INTO ${linksTable} AS stored (customer_id, invoice_id, state, claimed_id, ix_id, claim)
        SELECT g.customer_id, g.id, g.state, g.claimed_id, g.ix_id, g.claim FROM ${given}
        WHERE g.is_fresh AND g.claim IS NOT NULL
        ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
          ix_id = excluded.ix_id, claim = excluded.claim
          WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id`,
      )}
    END IF;
    RETURN (
      SELECT coalesce(json_agg(json_build_array(c.place, c.issued_before)), '[]')
      FROM unnest(v_issued_before, v_is_other, v_has_other_lines) WITH ORDINALITY
        AS c (issued_before, is_other, has_other_lines, place)
      WHERE c.is_other OR c.has_other_lines);
  END $body$;`

const keys = { customer_id: 'text', id: 'text' }
const known = writing(['invoices', 'links', 'tombstones'])

/** What is known of invoices by their keys: `[customer_id, id, summary, observed_at, claim]`, without a summary when deleted. */
const findKnown = `
  CREATE FUNCTION fatura.find_known(${parametersOf(Object.keys(keys))}) RETURNS json ${known.attributes} AS $body$
  DECLARE ${known.declare} ${readLists(keys)} v_known json;
  BEGIN${known.begin}
    ${execute(
      Object.keys(keys),
      given => `
      SELECT json_agg(json_build_array(g.customer_id, g.id, i.summary, coalesce(i.observed_at, t.observed_at), l.claim))
      FROM ${given} LEFT JOIN %1$s i ON i.customer_id = g.customer_id AND i.id = g.id
      LEFT JOIN %2$s l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
      LEFT JOIN %3$s t ON t.customer_id = g.customer_id AND t.id = g.id
      WHERE i.id IS NOT NULL OR t.id IS NOT NULL`,
      ' INTO v_known',
    )}
    RETURN coalesce(v_known, '[]');
  END $body$;`

const customers = writing(['customers', 'invoices'])

/** Totals, kept pages and versions of customers without counters. Tells which of them are large by now. */
const countCustomers = `
  CREATE FUNCTION fatura.count_customers(p_customer_id text, p_is_spread boolean, p_customers text, p_now bigint)
  RETURNS json ${customers.attributes} AS $body$
  DECLARE ${customers.declare} v_large json;
  BEGIN${customers.begin}
    EXECUTE format($sql$
      WITH counted AS (
        UPDATE %1$s AS stored SET version = ${nextVersion('$2')},
          total = (SELECT count(*) FROM %2$s i WHERE i.customer_id = changed.customer_id),
          head = ${readHead('changed.customer_id', '%2$s')}
        FROM unnest($1::text[]) AS changed (customer_id) WHERE stored.customer_id = changed.customer_id
        RETURNING stored.customer_id, stored.total)
      SELECT json_agg(customer_id) FROM counted WHERE total > ${countedAbove}
      $sql$, VARIADIC v_tables)
    INTO v_large USING p_customers, p_now;
    RETURN coalesce(v_large, '[]');
  END $body$;`

/** The clock keeps a version unique even across a store restored from a backup; the sum keeps it rising. */
export function nextVersion(now: string): string {
  return `greatest(stored.version + 1, ${now}::bigint)`
}

/** The newest invoices of a customer, as they are sent. */
export function readHead(customerId: string, invoicesTable = 'fatura.invoices'): string {
  return `coalesce((
    SELECT string_agg(newest.summary, ',') FROM (
      SELECT summary FROM ${invoicesTable} WHERE customer_id = ${customerId}
      ORDER BY issued_at DESC, id DESC LIMIT ${headSize}) newest), '')`
}

export const writeFunctions = `${findKnown}\n${saveInvoices}\n${countCustomers}`
