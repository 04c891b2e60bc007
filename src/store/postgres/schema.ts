/**
 * The schema as SQL. Tables hold the rows; the API's role has no right on them and reads through functions alone, each
 * of which takes the customer: even a statement that forgets its predicate cannot reach another customer's rows.
 *
 * Every key begins with customer_id, so that on Citus each request is routed to one shard. Text is compared with
 * collation "C": order never depends on the server's locale.
 */

const tables = `
  CREATE TABLE fatura.invoices (
    customer_id text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    issued_at   bigint NOT NULL,
    status      text COLLATE "C" NOT NULL,
    ix_status   text COLLATE "C",
    search      text COLLATE "C" NOT NULL,
    summary     text COLLATE "C" NOT NULL,
    observed_at bigint NOT NULL,
    PRIMARY KEY (customer_id, id)
  );

  CREATE INDEX invoices_unsettled ON fatura.invoices (customer_id, id) WHERE status IN ('draft', 'open');

  CREATE TABLE fatura.tombstones (
    customer_id text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    observed_at bigint NOT NULL,
    PRIMARY KEY (customer_id, id)
  );

  CREATE INDEX invoices_in_order ON fatura.invoices (customer_id, issued_at DESC, id DESC)
    INCLUDE (status, ix_status);

  CREATE TABLE fatura.invoice_lines (
    customer_id text COLLATE "C" NOT NULL,
    invoice_id  text COLLATE "C" NOT NULL,
    lines       text COLLATE "C" NOT NULL,
    PRIMARY KEY (customer_id, invoice_id)
  );

  CREATE TABLE fatura.customers (
    customer_id text COLLATE "C" PRIMARY KEY,
    version     bigint NOT NULL
  );

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
  CREATE VIEW fatura.freshness AS
    SELECT CASE WHEN count(*) = count(succeeded_at)
      THEN coalesce(min(CASE WHEN name LIKE '%:events' OR name LIKE 'ix:%' AND name <> 'ix:all' THEN succeeded_at END),
        min(succeeded_at)) END AS synced_at
    FROM fatura.streams
    WHERE name NOT LIKE '%:unsettled' AND (name <> 'import' OR NOT EXISTS (SELECT 1 FROM fatura.streams WHERE name <> 'import'));

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
  );`

/** The list's one statement: total, clamped page, rows, version and freshness, all from one snapshot. */
function listBody(condition: string): string {
  const matching = `
        i.customer_id = p_customer_id AND i.issued_at >= p_from AND i.issued_at < p_before
        AND (p_status IS NULL OR i.status = p_status)
        AND (p_ix_status IS NULL OR i.ix_status = p_ix_status)${condition}`
  return `
    WITH
      matched AS MATERIALIZED (SELECT count(*) AS total FROM fatura.invoices i WHERE ${matching}
      ),
      place AS MATERIALIZED (
        SELECT m.total, greatest(1, least(p_page, (m.total + p_page_size - 1) / p_page_size)) AS page FROM matched m
      )
    SELECT place.total, place.page,
      (SELECT string_agg(r.summary, ',' ORDER BY r.issued_at DESC, r.id DESC) FROM (
        SELECT i.summary, i.issued_at, i.id FROM fatura.invoices i WHERE ${matching}
        ORDER BY i.issued_at DESC, i.id DESC
        LIMIT p_page_size OFFSET (SELECT (place.page - 1) * p_page_size FROM place)
      ) r),
      (SELECT c.version FROM fatura.customers c WHERE c.customer_id = p_customer_id),
      (SELECT f.synced_at FROM fatura.freshness f)
    FROM place`
}

// Planned once a connection, with rights of the owner, blind to what the caller's search path holds.
const attributes = `
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog SET plan_cache_mode = force_generic_plan`

const pageColumns = 'total bigint, page bigint, summaries text, version bigint, synced_at bigint'
const filters = `p_customer_id text, p_page bigint, p_page_size bigint, p_status text, p_ix_status text,
  p_from bigint, p_before bigint`

const everyWord = `
        AND NOT EXISTS (
          SELECT FROM unnest(p_words, p_alternatives) AS w (word, alternative)
          WHERE strpos(i.search, w.word) = 0 AND (w.alternative IS NULL OR strpos(i.search, w.alternative) = 0)
        )`

const functions = `
  CREATE FUNCTION fatura.list_invoices(${filters}) RETURNS TABLE (${pageColumns}) ${attributes} AS $body$
  BEGIN RETURN QUERY ${listBody('')}; END $body$;

  CREATE FUNCTION fatura.search_invoices(${filters}, p_words text[], p_alternatives text[])
  RETURNS TABLE (${pageColumns}) ${attributes} AS $body$
  BEGIN RETURN QUERY ${listBody(everyWord)}; END $body$;

  CREATE FUNCTION fatura.read_snapshot(p_customer_id text)
  RETURNS TABLE (version bigint, synced_at bigint) ${attributes} AS $body$
  BEGIN RETURN QUERY
    SELECT (SELECT c.version FROM fatura.customers c WHERE c.customer_id = p_customer_id),
           (SELECT f.synced_at FROM fatura.freshness f);
  END $body$;

  CREATE FUNCTION fatura.find_invoice(p_customer_id text, p_invoice_id text)
  RETURNS TABLE (summary text, lines text, synced_at bigint) ${attributes} AS $body$
  BEGIN RETURN QUERY
    SELECT i.summary, l.lines, (SELECT f.synced_at FROM fatura.freshness f)
    FROM fatura.invoices i
    LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
    WHERE i.customer_id = p_customer_id AND i.id = p_invoice_id;
  END $body$;

  CREATE FUNCTION fatura.find_token(p_id text) RETURNS SETOF fatura.tokens ${attributes} AS $body$
  BEGIN RETURN QUERY SELECT * FROM fatura.tokens t WHERE t.id = p_id; END $body$;

  CREATE FUNCTION fatura.schema_version() RETURNS integer ${attributes} AS $body$
  BEGIN RETURN (SELECT max(m.version) FROM fatura.migrations m); END $body$;`

/** One entry a version; a released one never changes. */
export const migrations: readonly string[] = [`${tables}\n${functions}`]

/** The functions that read what belongs to a customer. */
export const customerFunctions = [
  'fatura.list_invoices',
  'fatura.search_invoices',
  'fatura.read_snapshot',
  'fatura.find_invoice',
]

/** What belongs to no customer, and is to be everywhere on Citus. */
export const referenceTables = [
  'fatura.migrations',
  'fatura.observation',
  'fatura.streams',
  'fatura.tokens',
  'fatura.documents',
  'fatura.document_clients',
]

/** What belongs to a customer, and lies with the customer's other rows on Citus. */
export const distributedTables = [
  'fatura.invoices',
  'fatura.invoice_lines',
  'fatura.customers',
  'fatura.tombstones',
  'fatura.links',
  'fatura.journal',
]
