-- The read model. Beside the columns that filters need, a row holds its summary as the text that is sent.
CREATE TABLE invoices (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  issued_at   INTEGER NOT NULL,
  status      TEXT NOT NULL,
  ix_status   TEXT,
  party_id    INTEGER NOT NULL,
  own_text    TEXT NOT NULL,
  summary     TEXT NOT NULL,
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (customer_id, id)
) STRICT;

-- What may still change or be deleted at its source, to be looked at again.
CREATE INDEX invoices_unsettled ON invoices (customer_id, id) WHERE status IN ('draft', 'open');

-- What was deleted at its source: an older observation must not revive it.
CREATE TABLE tombstones (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (customer_id, id)
) STRICT, WITHOUT ROWID;

-- The list's order, with the filters' columns: counting and skipping never touch the rows.
CREATE INDEX invoices_in_order ON invoices (customer_id, issued_at DESC, id DESC, status, ix_status);

-- The list's order within each state, however rare the state is.
CREATE INDEX invoices_by_state ON invoices (customer_id, status, ix_status, issued_at DESC, id DESC);

-- The other part of the text that invoices are found by: whom they are made out to, each once.
CREATE TABLE parties (
  customer_id TEXT NOT NULL,
  party_id    INTEGER NOT NULL,
  text        TEXT NOT NULL,
  PRIMARY KEY (customer_id, party_id)
) STRICT, WITHOUT ROWID;

-- Apart from the rows, so that a list reads past none of them. No row: the lines are not known.
CREATE TABLE invoice_lines (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  lines       TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id)
) STRICT;

CREATE TABLE customers (
  customer_id TEXT NOT NULL PRIMARY KEY,
  version     INTEGER NOT NULL,
  total       INTEGER NOT NULL DEFAULT 0,
  -- Whether there are counters, and searchable blocks: only for a customer of many invoices.
  counted     INTEGER NOT NULL DEFAULT 0,
  -- The newest summaries, joined as they are sent: the page that most ask for.
  head        BLOB NOT NULL DEFAULT x''
) STRICT;

-- How many invoices of a state a customer has: in all (span 0), in 32 days, in a day. Days count from the epoch.
-- '' is any status; ix is '=' and the ix_status, '-' for none, or '' for any.
CREATE TABLE counts (
  customer_id TEXT NOT NULL,
  span        INTEGER NOT NULL,
  status      TEXT NOT NULL,
  ix          TEXT NOT NULL,
  start       INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  PRIMARY KEY (customer_id, span, status, ix, start)
) STRICT, WITHOUT ROWID;

-- What invoices are found by, some hundred together: of the days from the first one on, up to the next block's.
CREATE TABLE search_blocks (
  customer_id TEXT NOT NULL,
  first       INTEGER NOT NULL,
  days        TEXT NOT NULL,
  states      TEXT NOT NULL,
  marks       BLOB NOT NULL,
  parties     TEXT NOT NULL,
  texts       TEXT NOT NULL,
  PRIMARY KEY (customer_id, first)
) STRICT;

CREATE TABLE streams (
  name         TEXT NOT NULL PRIMARY KEY,
  cursor       TEXT,
  succeeded_at INTEGER,
  failed_at    INTEGER,
  error        TEXT
) STRICT, WITHOUT ROWID;

-- Until when the records follow their sources: until the last time that all events were applied and the documents
-- that change were looked at, once everything was read to its end. An import counts only where nothing else brings
-- records.
CREATE VIEW current_freshness AS
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN name LIKE '%:events' OR name LIKE 'ix:%' AND name <> 'ix:all' THEN succeeded_at END),
      min(succeeded_at)) END AS synced_at
  FROM streams
  WHERE name NOT LIKE '%:unsettled' AND (name <> 'import' OR NOT EXISTS (SELECT 1 FROM streams WHERE name <> 'import'));

-- The same, as of the last time that a stream was saved: every answer tells it.
CREATE TABLE freshness (
  synced_at INTEGER
) STRICT;
INSERT INTO freshness (synced_at) VALUES (NULL);

-- What is recorded at the payment platform of the document of each invoice that came from there, and which it is.
CREATE TABLE links (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  state       TEXT,
  claimed_id  INTEGER,
  ix_id       INTEGER,
  claim       TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_invoice ON links (invoice_id);
CREATE INDEX links_by_claim ON links (claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX links_by_document ON links (ix_id) WHERE ix_id IS NOT NULL;
CREATE INDEX links_creating ON links (customer_id, invoice_id) WHERE state = 'creating';

-- The invoicing system's documents; one that was asked for and never seen has no body.
CREATE TABLE documents (
  id          INTEGER NOT NULL PRIMARY KEY,
  status      TEXT,
  reference   TEXT,
  date        TEXT,
  client_id   INTEGER,
  body        TEXT,
  misses      INTEGER NOT NULL,
  observed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX documents_by_reference ON documents (reference) WHERE reference IS NOT NULL;
CREATE INDEX documents_by_date ON documents (date, id);
CREATE INDEX documents_open ON documents (id) WHERE status IN ('draft', 'final', 'sent');

CREATE TABLE document_clients (
  id          INTEGER NOT NULL PRIMARY KEY,
  tax_id      TEXT,
  observed_at INTEGER NOT NULL
) STRICT;

-- What happened to each invoice lately, and what came of it.
CREATE TABLE journal (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  cause       TEXT NOT NULL,
  type        TEXT NOT NULL,
  happened_at INTEGER,
  at          INTEGER NOT NULL,
  outcome     TEXT NOT NULL,
  detail      TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, cause)
) STRICT, WITHOUT ROWID;

CREATE TABLE observation (
  last_at INTEGER NOT NULL
) STRICT;
INSERT INTO observation (last_at) VALUES (0);

CREATE TABLE tokens (
  id         TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
