/**
 * The schema as SQL. Tables hold the rows; the API's role has no right on them and reads through functions alone, each
 * of which takes the customer: even a statement that forgets its predicate cannot reach another customer's rows.
 *
 * Every key begins with customer_id, so that on Citus each request is routed to one shard. Text is compared with
 * collation "C": order never depends on the server's locale.
 */

import { functions } from './functions.ts'
import { keyFunctions } from './key-functions.ts'

const tables = `
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
  );`

const connectorTables = `
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
  );`

/** By it, the last invoice of a party is known for it; what was left behind before goes. */
const partyIndex = `
  CREATE INDEX invoices_by_party ON fatura.invoices (customer_id, party_id);
  DELETE FROM fatura.parties y WHERE NOT EXISTS (
    SELECT FROM fatura.invoices i WHERE i.customer_id = y.customer_id AND i.party_id = y.party_id);`

/**
 * Where most customers have one invoice, the planner would expect one of every customer, and take any index that begins
 * with the customer to find an invoice: at a customer of a million, it would read a million. So it expects a hundred.
 */
const expectedRows = 'ALTER TABLE fatura.invoices ALTER customer_id SET (n_distinct = -0.01);'

/** A reference may be of any length, and is only ever looked for as a whole. */
const referenceIndex = `
  DROP INDEX fatura.documents_by_reference;
  CREATE INDEX documents_by_reference ON fatura.documents USING hash (reference);`

/** One entry a version; a released one never changes. */
export const migrations: readonly string[] = [
  `${tables}\n${functions}`,
  [connectorTables, partyIndex, expectedRows, referenceIndex, keyFunctions].join('\n'),
]

/** What belongs to no customer, and is to be everywhere on Citus. */
export const referenceTables = [
  'fatura.migrations',
  'fatura.observation',
  'fatura.freshness',
  'fatura.streams',
  'fatura.tokens',
  'fatura.documents',
  'fatura.document_clients',
  'fatura.pins',
  'fatura.lease',
  'fatura.set_aside',
]

/** What belongs to a customer, and lies with the customer's other rows on Citus. */
export const distributedTables = [
  'fatura.invoices',
  'fatura.invoice_lines',
  'fatura.customers',
  'fatura.counts',
  'fatura.search_days',
  'fatura.parties',
  'fatura.tombstones',
  'fatura.links',
  'fatura.journal',
]
