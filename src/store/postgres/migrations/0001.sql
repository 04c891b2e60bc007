CREATE TABLE fatura.invoices (
  customer_id text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  issued_at   bigint NOT NULL,
  status      text COLLATE "C" NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  ix_status   text COLLATE "C",
  currency    text COLLATE "C" NOT NULL,
  total_cents bigint NOT NULL,
  -- Columns that a list sends come first, because PostgreSQL reads a row from its start to the last requested column. `summary` is the JSON
  -- text that a list sends.
  summary           text COLLATE "C" NOT NULL,
  expanded_document text COLLATE "C" NOT NULL,
  expanded_payment  text COLLATE "C" NOT NULL,
  payment           text COLLATE "C" NOT NULL,
  document          text COLLATE "C",
  -- Folded texts in UTF-8. A search finds `search_text` by any part, and the ids in `search_ids` by their beginning. Searching
  -- bytes takes half the work of searching characters. An index entry holds 2.7 kB. A longer text is in `long_text`, and `search_text` is
  -- NULL.
  search_text bytea,
  long_text   bytea,
  search_ids  bytea NOT NULL,
  -- Stamps in microseconds: before the payment platform was asked, and after it had answered.
  observed_stamp bigint NOT NULL,
  answered_stamp bigint NOT NULL CHECK (answered_stamp >= observed_stamp),
  -- The sum of the credit notes in force of the invoice's document.
  credited_cents bigint NOT NULL CHECK (credited_cents >= 0),
  -- Of an open invoice, `to_pay_cents` is the amount to pay, `due_date` its due day, and `in_favour_cents` the customer's credit.
  due_date        text COLLATE "C",
  to_pay_cents    bigint NOT NULL CHECK (to_pay_cents >= 0),
  in_favour_cents bigint NOT NULL CHECK (in_favour_cents >= 0),
  PRIMARY KEY (customer_id, id)
);

-- A search reads only the index when VACUUM has marked the rows' pages as visible to all. Therefore VACUUM runs often.
ALTER TABLE fatura.invoices SET (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);

-- Where most customers have one invoice, the planner would expect one row for every customer. It would then use any index that begins with
-- the customer, and read a million rows of a customer of a million. With this setting the planner expects a hundred rows. Citus plans for
-- each customer, so the setting is not passed on to its shards.
SET LOCAL citus.enable_ddl_propagation = off;
ALTER TABLE fatura.invoices ALTER customer_id SET (n_distinct = -0.01);
SET LOCAL citus.enable_ddl_propagation = on;

-- The list's order with all columns of filters, searches and sums. Counting, skipping, searching and summing therefore read only this
-- index.
CREATE INDEX invoices_in_order ON fatura.invoices (customer_id, issued_at DESC, id DESC)
  INCLUDE (status, ix_status, currency, total_cents, search_text, search_ids);

CREATE INDEX invoices_unsettled ON fatura.invoices (customer_id, id)
  WHERE status IN ('draft', 'open', 'uncollectible');

CREATE INDEX invoices_uncertified ON fatura.invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';

CREATE INDEX invoices_credited ON fatura.invoices (customer_id, currency, credited_cents)
  WHERE status = 'open' AND credited_cents <> 0;

-- Open invoices of a customer, earliest due day first.
CREATE INDEX invoices_open ON fatura.invoices (customer_id, due_date, currency, id)
  INCLUDE (to_pay_cents, in_favour_cents) WHERE status = 'open';

-- Finds customers by the e-mail address with which they sign in. A pattern is used, because PostgreSQL's JSON parser fails at \u0000.
CREATE INDEX invoices_by_email ON fatura.invoices
  (lower(substring(summary from '"customer_email":"([^"\\]{1,254})"')));

CREATE TABLE fatura.invoice_payments (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  payment_id  text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, payment_id)
);
CREATE INDEX invoice_payments_by_payment ON fatura.invoice_payments (payment_id);

-- Entries of the customers' statements of account, derived from the invoices. `entry` is the JSON of one entry. `place` is its position
-- within its invoice.
CREATE TABLE fatura.account_entries (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  place       bigint NOT NULL,
  day         text COLLATE "C" NOT NULL,
  currency    text COLLATE "C" NOT NULL,
  cents       bigint NOT NULL,
  entry       text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, place)
);
CREATE INDEX account_entries_in_order ON fatura.account_entries (customer_id, day, invoice_id, place) INCLUDE (currency, cents);

CREATE TABLE fatura.tombstones (
  customer_id text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  observed_stamp bigint NOT NULL,
  answered_stamp bigint NOT NULL CHECK (answered_stamp >= observed_stamp),
  PRIMARY KEY (customer_id, id)
);
CREATE INDEX tombstones_by_id ON fatura.tombstones (id);

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
  counted     boolean NOT NULL DEFAULT false
);

-- The feed of changes. A customer's changes are ordered by `version`. `previous` is the version of the change before, so that a reader
-- notices pruned changes. All changes of one transaction form a commit. `place` is the position within the commit.
CREATE TABLE fatura.changes (
  customer_id text COLLATE "C" NOT NULL,
  version     bigint NOT NULL,
  previous    bigint NOT NULL,
  at          bigint NOT NULL,
  commit_id   bigint NOT NULL,
  place       integer NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL CHECK (kind IN ('created', 'updated', 'deleted', 'document')),
  PRIMARY KEY (customer_id, version)
);
CREATE INDEX changes_by_commit ON fatura.changes (commit_id, place);

CREATE TABLE fatura.commits (
  seq       bigint PRIMARY KEY,
  commit_id bigint NOT NULL UNIQUE,
  n         integer NOT NULL CHECK (n > 0)
);

CREATE TABLE fatura.feed (
  only_one   boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  last_seq   bigint NOT NULL,
  pruned_seq bigint NOT NULL,
  CHECK (pruned_seq <= last_seq)
);
INSERT INTO fatura.feed (last_seq, pruned_seq) VALUES (0, 0);

CREATE TABLE fatura.counters (
  customer_id text COLLATE "C" NOT NULL,
  month       text COLLATE "C" NOT NULL,
  status      text COLLATE "C" NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  currency    text COLLATE "C" NOT NULL,
  ix          text COLLATE "C" NOT NULL,
  n           bigint NOT NULL,
  total_cents numeric NOT NULL,
  PRIMARY KEY (customer_id, month, status, currency, ix)
);

CREATE TABLE fatura.streams (
  name         text COLLATE "C" PRIMARY KEY,
  cursor       text COLLATE "C",
  succeeded_at bigint,
  failed_at    bigint,
  error        text COLLATE "C"
);

CREATE TABLE fatura.freshness (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  synced_at bigint,
  life      text COLLATE "C" NOT NULL
);
INSERT INTO fatura.freshness (synced_at, life) VALUES (NULL, left(replace(gen_random_uuid()::text, '-', ''), 12));

CREATE TABLE fatura.links (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  state       text COLLATE "C" CHECK (state IN ('creating', 'synced', 'failed', 'ignored')),
  claimed_id  bigint,
  ix_id       bigint,
  claim       text COLLATE "C" NOT NULL,
  number      text COLLATE "C",
  PRIMARY KEY (customer_id, invoice_id)
);
CREATE INDEX links_by_invoice ON fatura.links (invoice_id);
CREATE INDEX links_by_claim ON fatura.links (claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX links_by_document ON fatura.links (ix_id) WHERE ix_id IS NOT NULL;
CREATE INDEX links_by_number ON fatura.links USING hash (number);
CREATE INDEX links_creating ON fatura.links (customer_id, invoice_id) WHERE state = 'creating';

CREATE TABLE fatura.documents (
  id          bigint PRIMARY KEY,
  status      text COLLATE "C",
  reference   text COLLATE "C",
  uid         text COLLATE "C",
  date        text COLLATE "C",
  client_id   bigint,
  -- The client's tax ID when the document was first seen issued, '' when it had none. Clients may be edited later. NULL for a draft, or
  -- when the client was not read.
  client_tax_id text COLLATE "C",
  body        text COLLATE "C",
  misses      integer NOT NULL CHECK (misses >= 0),
  observed_stamp bigint NOT NULL
);
-- A hash index, because a reference may have any length and is only searched as a whole.
CREATE INDEX documents_by_reference ON fatura.documents USING hash (reference);
CREATE INDEX documents_by_uid ON fatura.documents USING hash (uid);
CREATE INDEX documents_by_client ON fatura.documents (client_id, id) WHERE client_id IS NOT NULL;
CREATE INDEX documents_by_date ON fatura.documents (date, id);
CREATE INDEX documents_open ON fatura.documents (id) WHERE status IN ('draft', 'final', 'sent');

CREATE TABLE fatura.document_clients (
  id          bigint PRIMARY KEY,
  tax_id      text COLLATE "C",
  observed_stamp bigint NOT NULL
);

-- Related documents and QR code of each document that an invoice has. They are requested again after a change of the document.
CREATE TABLE fatura.document_relations (
  id          bigint PRIMARY KEY,
  relations   text COLLATE "C",
  observed_stamp bigint NOT NULL
);
CREATE INDEX document_relations_due ON fatura.document_relations (observed_stamp, id);

CREATE TABLE fatura.journal (
  customer_id text COLLATE "C" NOT NULL,
  invoice_id  text COLLATE "C" NOT NULL,
  cause       text COLLATE "C" NOT NULL,
  type        text COLLATE "C" NOT NULL,
  happened_at bigint,
  at          bigint NOT NULL,
  outcome     text COLLATE "C" NOT NULL CHECK (outcome IN ('applied', 'unchanged', 'overlapped', 'ignored')),
  detail      text COLLATE "C" NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, cause)
);

CREATE TABLE fatura.observation (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  last_stamp bigint NOT NULL
);
INSERT INTO fatura.observation (last_stamp) VALUES (0);

CREATE TABLE fatura.tokens (
  id         text COLLATE "C" PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  hash       text COLLATE "C" NOT NULL,
  customers  text[],
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

CREATE TABLE fatura.keys (
  kid        text COLLATE "C" PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  x          text COLLATE "C" NOT NULL,
  customers  text[],
  created_at bigint NOT NULL,
  revoked_at bigint
);

CREATE TABLE fatura.scopes (
  id          text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (id, customer_id)
);

CREATE TABLE fatura.bound_accounts (
  system    text COLLATE "C" PRIMARY KEY,
  account   text COLLATE "C" NOT NULL,
  bound_at  bigint NOT NULL
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
  asked_stamp bigint NOT NULL,
  due_at   bigint,
  first_at bigint NOT NULL,
  last_at  bigint NOT NULL,
  tries    integer NOT NULL CHECK (tries > 0),
  PRIMARY KEY (system, kind, id)
);
CREATE INDEX set_aside_by_id ON fatura.set_aside (id);

CREATE TABLE fatura.outgoing_webhooks (
  id           text COLLATE "C" PRIMARY KEY,
  url          text COLLATE "C" NOT NULL,
  customer_ids text COLLATE "C",
  secret       text COLLATE "C" NOT NULL,
  private_key  text COLLATE "C" NOT NULL,
  cursor       bigint NOT NULL,
  state        text COLLATE "C" NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
  attempts     integer NOT NULL CHECK (attempts >= 0),
  next_at      bigint,
  error        text COLLATE "C",
  created_at   bigint NOT NULL
);

CREATE TABLE fatura.rechecks (
  system    text COLLATE "C" NOT NULL,
  hour      bigint NOT NULL,
  checked   bigint NOT NULL,
  corrected bigint NOT NULL,
  PRIMARY KEY (system, hour)
);

CREATE TABLE fatura.corrections (
  id          text COLLATE "C" PRIMARY KEY,
  customer_id text COLLATE "C" NOT NULL,
  found_at    bigint NOT NULL
);

-- A view for people who use psql. The program does not read it, and the API's role may not. Patterns are used, because PostgreSQL's JSON
-- parser fails at \u0000. Each pattern matches the text as the program writes it, from its first character on.
CREATE VIEW fatura.invoices_readable AS
SELECT
  customer_id,
  id,
  substring(summary from '^\{"id":"[^"]*","number":"((?:[^"\\]|\\.)*)"') AS number,
  status,
  round(total_cents / 10::numeric ^ decimals, decimals) || ' ' || upper(currency) AS total,
  to_char(to_timestamp(issued_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') COLLATE "C" AS issued_at,
  substring(document from '^\{"id":[0-9]+,"type":"[^"]*","status":"[^"]*","number":"((?:[^"\\]|\\.)*)"') AS document_number,
  ix_status,
  substring(summary from '"ix_sync_state":"([^"]*)"') AS ix_sync_state
FROM fatura.invoices
CROSS JOIN LATERAL (
  SELECT CASE
    WHEN currency IN ('bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf', 'xof', 'xpf') THEN 0
    WHEN currency IN ('bhd', 'jod', 'kwd', 'omr', 'tnd') THEN 3
    ELSE 2
  END AS decimals
) AS smallest_unit;
