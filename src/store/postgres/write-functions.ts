/**
 * What writers call: what is known of a batch's invoices, what writes all of its rows, and what counts its customers. Each runs
 * where these rows lie, so that a batch is one message, on Citus one to each shard. They have no rights of their own.
 */
import { countedAbove, headSize } from '../read-model/counting.ts'
import { type ListType, readListInSql } from './lists.ts'
import { findShards, onRows, onTables, type Table } from './on-tables.ts'

/**
 * A plan is made once a connection, of a shard's tables for each batch, and must be good for all batches, also when it was
 * made while the tables were empty: so no statement leaves open in which order to join.
 */
const attributes = `LANGUAGE plpgsql SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off`

/** What is given of each invoice: lists of one length, each as a text, or null where it is of nothing else. */
export const givenColumns = {
  customer_id: 'text',
  id: 'text',
  issued_at: 'bigint',
  status: 'text',
  ix_status: 'text',
  party_id: 'bigint',
  party: 'joined',
  own_text: 'joined',
  summary: 'joined',
  observed_at: 'bigint',
  /** Null where the lines are not known. */
  lines: 'joined',
  /** Null where nothing is claimed, and so are the next three. */
  state: 'text',
  claimed_id: 'bigint',
  ix_id: 'bigint',
  claim: 'joined',
} as const satisfies Record<string, ListType>

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

const rowValues = rowColumns
  .map(name => (name === 'own_text' ? "convert_to(g.own_text, 'UTF8')" : `g.${name}`))
  .join(', ')

/** Joins the row of a key, or nothing: by the table's key, one after the other. */
const lookUp = (table: string, alias: string, id: string) =>
  `LEFT JOIN LATERAL (SELECT * FROM ${table} WHERE customer_id = g.customer_id AND ${id} = g.id OFFSET 0) ${alias} ON true`

/** Lists are read once, however many statements use them. */
function readLists(columns: Readonly<Record<string, ListType>>): string {
  return Object.entries(columns)
    .map(
      ([name, type]) =>
        `v_${name} ${type === 'joined' ? 'text' : type}[] := ${readListInSql(type, `given_${name}`)};`,
    )
    .join(' ')
}

const parametersOf = (columns: readonly string[]) =>
  ['p_customer_id text, p_is_spread boolean', ...columns.map(name => `given_${name} text`)].join(', ')

const insertInvoices = (given: string, table: Table, isMeant: string) => `
        INSERT INTO ${table('invoices')} (${rowColumns.join(', ')})
        SELECT ${rowValues} FROM ${given} WHERE ${isMeant}`

const invoiceTables = ['invoices', 'invoice_lines', 'parties', 'links']
const execute = onRows.bind(null, invoiceTables)

/**
 * What was observed later than what is given stays as it is, its lines included; what is alike is only seen again. Tells of
 * each invoice that changed its place in what was given, and its moment before. The customers are locked: what is not found is
 * new, and is written without looking for it again.
 */
const saveInvoices = `
  CREATE FUNCTION fatura.save_invoices(${parametersOf(names)}) RETURNS json ${attributes} AS $body$
  DECLARE
    v_tables text[];
    ${readLists(givenColumns)}
    v_issued_before bigint[]; v_party_before bigint[]; v_is_new boolean[]; v_is_seen boolean[]; v_is_other boolean[];
    v_has_other_lines boolean[]; v_is_fresh boolean[]; v_customer text; v_party_left bigint; v_invoice text;
  BEGIN${findShards(invoiceTables)}
    ${execute(
      ['customer_id', 'id', 'party_id', 'own_text', 'summary', 'observed_at', 'lines'],
      (given, table) => `
      SELECT array_agg(issued_at), array_agg(party_id), array_agg(is_new), array_agg(is_fresh),
        array_agg(is_fresh AND is_alike AND is_older), array_agg(is_fresh AND NOT is_alike AND NOT is_new),
        array_agg(is_fresh AND has_other_lines)
      FROM (
        SELECT i.issued_at, i.party_id, i.id IS NULL AS is_new, coalesce(i.observed_at <= g.observed_at, true) AS is_fresh,
          i.observed_at < g.observed_at AS is_older, l.lines IS DISTINCT FROM g.lines AS has_other_lines,
          i.id IS NOT NULL AND i.summary = g.summary AND i.party_id = g.party_id AND i.own_text = convert_to(g.own_text, 'UTF8')
            AS is_alike
        FROM ${given}
        ${lookUp(table('invoices'), 'i', 'id')} ${lookUp(table('invoice_lines'), 'l', 'invoice_id')}
        ORDER BY g.place) found`,
      'v_issued_before, v_party_before, v_is_new, v_is_fresh, v_is_seen, v_is_other, v_has_other_lines',
    )}
    IF true = ANY (v_is_seen) THEN
      ${execute(
        [...rowColumns, 'is_seen'],
        (given, table) => `${insertInvoices(given, table, 'g.is_seen')}
        ON CONFLICT (customer_id, id) DO UPDATE SET observed_at = excluded.observed_at`,
      )}
    END IF;
    IF true = ANY (v_is_new || v_is_other) THEN
      ${execute(
        ['customer_id', 'party_id', 'party', 'party_before', 'is_new', 'is_other'],
        (given, table) => `
        INSERT INTO ${table('parties')} (customer_id, party_id, text)
        SELECT DISTINCT ON (g.customer_id, g.party_id) g.customer_id, g.party_id, g.party FROM ${given}
        WHERE (g.is_new OR g.is_other) AND g.party_before IS DISTINCT FROM g.party_id ORDER BY g.customer_id, g.party_id
        ON CONFLICT DO NOTHING`,
      )}
    END IF;
    IF true = ANY (v_is_new) THEN
      ${execute([...rowColumns, 'is_new'], (given, table) => insertInvoices(given, table, 'g.is_new'))}
    END IF;
    IF true = ANY (v_is_other) THEN
      ${execute(
        [...rowColumns, 'is_other'],
        (given, table) => `${insertInvoices(given, table, 'g.is_other')}
        ON CONFLICT (customer_id, id) DO UPDATE SET
          issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
          party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
          observed_at = excluded.observed_at`,
      )}
    END IF;
    FOR v_customer, v_party_left IN
      SELECT DISTINCT c.customer_id, c.party_before
      FROM unnest(v_customer_id, v_party_id, v_party_before, v_is_other) AS c (customer_id, party_id, party_before, is_other)
      WHERE c.is_other AND c.party_before <> c.party_id
    LOOP
      ${onTables(
        invoiceTables,
        ['customer', 'party_left'],
        ({ table, value }) => `
        DELETE FROM ${table('parties')} y WHERE y.customer_id = ${value('customer')} AND y.party_id = ${value('party_left')}
          AND NOT EXISTS (SELECT FROM ${table('invoices')} i
            WHERE i.customer_id = ${value('customer')} AND i.party_id = ${value('party_left')})`,
      )}
    END LOOP;
    IF true = ANY (v_has_other_lines) THEN
      ${execute(
        ['customer_id', 'id', 'lines', 'has_other_lines'],
        (given, table) => `
        INSERT INTO ${table('invoice_lines')} (customer_id, invoice_id, lines)
        SELECT g.customer_id, g.id, g.lines FROM ${given} WHERE g.has_other_lines AND g.lines IS NOT NULL
        ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines`,
      )}
      FOR v_customer, v_invoice IN
        SELECT c.customer_id, c.id FROM unnest(v_customer_id, v_id, v_lines, v_has_other_lines)
          AS c (customer_id, id, lines, has_other_lines)
        WHERE c.has_other_lines AND c.lines IS NULL
      LOOP
        ${onTables(
          invoiceTables,
          ['customer', 'invoice'],
          ({ table, value }) => `
          DELETE FROM ${table('invoice_lines')} l
          WHERE l.customer_id = ${value('customer')} AND l.invoice_id = ${value('invoice')}`,
        )}
      END LOOP;
    END IF;
    IF v_claim IS NOT NULL THEN
      ${execute(
        ['customer_id', 'id', 'state', 'claimed_id', 'ix_id', 'claim', 'is_fresh'],
        (given, table) => `
        INSERT INTO ${table('links')} AS stored (customer_id, invoice_id, state, claimed_id, ix_id, claim)
        SELECT g.customer_id, g.id, g.state, g.claimed_id, g.ix_id, g.claim FROM ${given}
        WHERE g.is_fresh AND g.claim IS NOT NULL
        ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
          ix_id = excluded.ix_id, claim = excluded.claim
          WHERE stored.claim <> excluded.claim OR stored.ix_id IS DISTINCT FROM excluded.ix_id`,
      )}
    END IF;
    RETURN (
      SELECT coalesce(json_agg(json_build_array(c.place, c.issued_before)), '[]')
      FROM unnest(v_issued_before, v_is_new, v_is_other, v_has_other_lines) WITH ORDINALITY
        AS c (issued_before, is_new, is_other, has_other_lines, place)
      WHERE c.is_new OR c.is_other OR c.has_other_lines);
  END $body$;`

const keys = { customer_id: 'text', id: 'text' } as const
const knownTables = ['invoices', 'links', 'tombstones']

/** What is known of invoices by their keys: `[customer_id, id, summary, observed_at, claim]`, without a summary when deleted. */
const findKnown = `
  CREATE FUNCTION fatura.find_known(${parametersOf(Object.keys(keys))}) RETURNS json ${attributes} AS $body$
  DECLARE v_tables text[]; ${readLists(keys)} v_known json;
  BEGIN${findShards(knownTables)}
    ${onRows(
      knownTables,
      Object.keys(keys),
      (given, table) => `
      SELECT json_agg(json_build_array(g.customer_id, g.id, i.summary, coalesce(i.observed_at, t.observed_at), CASE WHEN i.id IS NOT NULL THEN l.claim END))
      FROM ${given} ${lookUp(table('invoices'), 'i', 'id')}
      ${lookUp(table('links'), 'l', 'invoice_id')} ${lookUp(table('tombstones'), 't', 'id')}
      WHERE i.id IS NOT NULL OR t.id IS NOT NULL`,
      'v_known',
    )}
    RETURN coalesce(v_known, '[]');
  END $body$;`

const countedTables = ['customers', 'invoices']

/** Totals, kept pages and versions of customers without counters. Tells which of them are large by now. */
const countCustomers = `
  CREATE FUNCTION fatura.count_customers(p_customer_id text, p_is_spread boolean, given_customers text, given_now bigint)
  RETURNS json ${attributes} AS $body$
  DECLARE v_tables text[]; v_customers text[] := given_customers; v_now bigint := given_now; v_large json;
  BEGIN${findShards(countedTables)}
    ${onTables(
      countedTables,
      ['customers', 'now'],
      ({ table, value }) => `
      WITH counted AS (
        INSERT INTO ${table('customers')} AS stored (customer_id, version, total, head)
        SELECT changed.customer_id, ${value('now')},
          (SELECT count(*) FROM ${table('invoices')} i WHERE i.customer_id = changed.customer_id),
          ${readHead('changed.customer_id', table('invoices'))}
        FROM unnest(${value('customers')}) AS changed (customer_id)
        ON CONFLICT (customer_id) DO UPDATE SET
          version = ${nextVersion('excluded.version')}, total = excluded.total, head = excluded.head
        RETURNING stored.customer_id, stored.total)
      SELECT json_agg(customer_id) FROM counted WHERE total > ${countedAbove}`,
      'v_large',
    )}
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
