-- The read model. Beside the columns that filters need, a row holds its summary as the text that is sent.
CREATE TABLE invoices (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  issued_at   INTEGER NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  ix_status   TEXT,
  currency    TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  -- Folded: the text that a search finds by any part, and the ids that it finds by their beginnings.
  search_text TEXT NOT NULL,
  search_ids  TEXT NOT NULL,
  summary     TEXT NOT NULL,
  -- When the payment platform was asked, and when it had answered: in microseconds, as every stamp.
  observed_stamp INTEGER NOT NULL,
  answered_stamp INTEGER NOT NULL CHECK (answered_stamp >= observed_stamp),
  -- The associated document as the text that is sent, and the sum of its credit notes in force.
  document       TEXT,
  credited_cents INTEGER NOT NULL CHECK (credited_cents >= 0),
  -- What is owed and what was paid, as JSON; of it, what is to be paid of an open invoice, since when, and what such an
  -- invoice leaves in the customer's favour.
  payment         TEXT NOT NULL,
  due_date        TEXT,
  to_pay_cents    INTEGER NOT NULL CHECK (to_pay_cents >= 0),
  in_favour_cents INTEGER NOT NULL CHECK (in_favour_cents >= 0),
  -- What `expand` adds, as JSON.
  expanded_document TEXT NOT NULL,
  expanded_payment  TEXT NOT NULL,
  PRIMARY KEY (customer_id, id)
) STRICT;

-- The list's order, with all that filters, searches and sums look at: counting, skipping, searching and summing never
-- touch the rows.
CREATE INDEX invoices_in_order
  ON invoices (customer_id, issued_at DESC, id DESC, status, ix_status, currency, total_cents, search_text, search_ids);

-- Invoices that may still change or be deleted at their source, to be looked at again.
CREATE INDEX invoices_unsettled ON invoices (customer_id, id)
  WHERE status IN ('draft', 'open', 'uncollectible');

-- Paid invoices without a document in force, where one is needed.
CREATE INDEX invoices_uncertified ON invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';

CREATE INDEX invoices_credited ON invoices (customer_id, currency, credited_cents)
  WHERE status = 'open' AND credited_cents <> 0;

-- What is to be paid: the oldest due day first.
CREATE INDEX invoices_open ON invoices (customer_id, due_date, currency, id, to_pay_cents, in_favour_cents)
  WHERE status = 'open';

-- Customers by the address that they sign in with.
CREATE INDEX invoices_by_email ON invoices (lower(json_extract(summary, '$.customer_email')));

-- The invoices that a payment paid, or is to pay; made from `payment`.
CREATE TABLE invoice_payments (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  payment_id  TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX invoice_payments_by_payment ON invoice_payments (payment_id);

-- The entries that invoices make in their customer's account; made from the invoices. `entry` is what is told of one, as JSON.
CREATE TABLE account_entries (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  place       INTEGER NOT NULL,
  day         TEXT NOT NULL,
  currency    TEXT NOT NULL,
  cents       INTEGER NOT NULL,
  entry       TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, place)
) STRICT, WITHOUT ROWID;
-- The order of statements, with all that their sums look at.
CREATE INDEX account_entries_in_order ON account_entries (customer_id, day, invoice_id, place, currency, cents);

-- Invoices that were deleted at their source: an older observation must not revive them.
CREATE TABLE tombstones (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  observed_stamp INTEGER NOT NULL,
  answered_stamp INTEGER NOT NULL CHECK (answered_stamp >= observed_stamp),
  PRIMARY KEY (customer_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_by_id ON tombstones (id);

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
  -- Whether there are counters: only for a customer of many invoices.
  counted     INTEGER NOT NULL DEFAULT 0 CHECK (counted IN (0, 1))
) STRICT;

-- The feed of changes. A customer's changes are in the order of their versions; `previous` is the version before one, so that a
-- reader knows whether a pruned one lay between. All changes of a transaction are a commit, each at its place.
CREATE TABLE changes (
  customer_id TEXT NOT NULL,
  version     INTEGER NOT NULL,
  previous    INTEGER NOT NULL,
  invoice_id  TEXT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('created', 'updated', 'deleted', 'document')),
  at          INTEGER NOT NULL,
  commit_id   INTEGER NOT NULL,
  place       INTEGER NOT NULL,
  PRIMARY KEY (customer_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_commit ON changes (commit_id, place);

-- Commits in their order: `seq` is that of the last of its n changes.
CREATE TABLE commits (
  seq       INTEGER NOT NULL PRIMARY KEY,
  commit_id INTEGER NOT NULL UNIQUE,
  n         INTEGER NOT NULL CHECK (n > 0)
) STRICT;

-- Sequence numbers of the latest change and of the latest pruned one. A commit adds the number of its changes, or takes the
-- microseconds since 1970 if these are more. One row.
CREATE TABLE feed (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  last_seq   INTEGER NOT NULL,
  pruned_seq INTEGER NOT NULL,
  CHECK (pruned_seq <= last_seq)
) STRICT;
INSERT INTO feed (last_seq, pruned_seq) VALUES (0, 0);
CREATE TRIGGER feed_stays BEFORE DELETE ON feed BEGIN SELECT RAISE(ABORT, 'the row of feed stays'); END;

-- Number of a customer's invoices of a UTC month (YYYY-MM), status, ix_status and currency, and the sum of their totals.
-- ix is '=' and the ix_status, or '-' for none.
CREATE TABLE counts (
  customer_id TEXT NOT NULL,
  month       TEXT NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  currency    TEXT NOT NULL,
  ix          TEXT NOT NULL,
  n           INTEGER NOT NULL,
  total_cents INTEGER NOT NULL,
  PRIMARY KEY (customer_id, month, status, currency, ix)
) STRICT, WITHOUT ROWID;

CREATE TABLE streams (
  name         TEXT NOT NULL PRIMARY KEY,
  cursor       TEXT,
  succeeded_at INTEGER,
  failed_at    INTEGER,
  error        TEXT
) STRICT, WITHOUT ROWID;

-- The moment until which the records follow their sources, as of the last time that a stream was saved, and the store's life: every
-- answer shows them. The creation, a copy and a restored backup begin another life; ETags and cursors of a former one mean nothing. One row.
CREATE TABLE freshness (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  synced_at INTEGER,
  life      TEXT NOT NULL
) STRICT;
INSERT INTO freshness (synced_at, life) VALUES (NULL, lower(hex(randomblob(6))));
CREATE TRIGGER freshness_stays BEFORE DELETE ON freshness BEGIN SELECT RAISE(ABORT, 'the row of freshness stays'); END;

-- The document that the payment platform's record of an invoice claims, and the one that it has.
CREATE TABLE links (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  state       TEXT CHECK (state IN ('creating', 'synced', 'failed', 'ignored')),
  claimed_id  INTEGER,
  ix_id       INTEGER,
  claim       TEXT NOT NULL,
  -- The invoice's printed number: a document may refer to it.
  number      TEXT,
  PRIMARY KEY (customer_id, invoice_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_invoice ON links (invoice_id);
CREATE INDEX links_by_claim ON links (claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX links_by_document ON links (ix_id) WHERE ix_id IS NOT NULL;
CREATE INDEX links_by_number ON links (number) WHERE number IS NOT NULL;
CREATE INDEX links_creating ON links (customer_id, invoice_id) WHERE state = 'creating';

-- The invoicing system's documents; one that was asked for and never seen has no body.
CREATE TABLE documents (
  id          INTEGER NOT NULL PRIMARY KEY,
  status      TEXT,
  reference   TEXT,
  uid         TEXT,
  date        TEXT,
  client_id   INTEGER,
  -- Its client's tax ID when it was first seen issued, '' for none: clients are edited later. NULL: a draft, or the client was not read.
  client_tax_id TEXT,
  body        TEXT,
  misses      INTEGER NOT NULL CHECK (misses >= 0),
  observed_stamp INTEGER NOT NULL
) STRICT;
CREATE INDEX documents_by_reference ON documents (reference) WHERE reference IS NOT NULL;
CREATE INDEX documents_by_uid ON documents (uid) WHERE uid IS NOT NULL;
CREATE INDEX documents_by_client ON documents (client_id, id) WHERE client_id IS NOT NULL;
CREATE INDEX documents_by_date ON documents (date, id);
CREATE INDEX documents_open ON documents (id) WHERE status IN ('draft', 'final', 'sent');

CREATE TABLE document_clients (
  id          INTEGER NOT NULL PRIMARY KEY,
  tax_id      TEXT,
  observed_stamp INTEGER NOT NULL
) STRICT;

-- Related documents and the QR code of each document that an invoice has; asked for again when the document changed.
CREATE TABLE document_relations (
  id          INTEGER NOT NULL PRIMARY KEY,
  relations   TEXT,
  observed_stamp INTEGER NOT NULL
) STRICT;
CREATE INDEX document_relations_due ON document_relations (observed_stamp, id);

-- The latest events of each invoice, and their outcomes.
CREATE TABLE journal (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  cause       TEXT NOT NULL,
  type        TEXT NOT NULL,
  happened_at INTEGER,
  at          INTEGER NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('applied', 'unchanged', 'overlapped', 'ignored')),
  detail      TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, cause)
) STRICT, WITHOUT ROWID;

-- The latest observation of all. One row.
CREATE TABLE observation (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  last_stamp INTEGER NOT NULL
) STRICT;
INSERT INTO observation (last_stamp) VALUES (0);
CREATE TRIGGER observation_stays BEFORE DELETE ON observation BEGIN SELECT RAISE(ABORT, 'the row of observation stays'); END;

CREATE TABLE tokens (
  id         TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;

-- Keys that sign customer links: the public half alone. `x` is the Ed25519 point, in base64url, as a JWK holds it.
CREATE TABLE keys (
  kid        TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  x          TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- The customers of tokens and keys that are not for all of them: a request asks for one.
CREATE TABLE scopes (
  id          TEXT NOT NULL,
  customer_id TEXT NOT NULL,
  PRIMARY KEY (id, customer_id)
) STRICT, WITHOUT ROWID;

-- The account of each upstream system that the records come from.
CREATE TABLE bound_accounts (
  system    TEXT NOT NULL PRIMARY KEY,
  account   TEXT NOT NULL,
  bound_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The process that may write as the connector. One row.
CREATE TABLE lease (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  holder TEXT,
  epoch  INTEGER NOT NULL,
  beats  INTEGER NOT NULL
) STRICT;
INSERT INTO lease (holder, epoch, beats) VALUES (NULL, 0, 0);
CREATE TRIGGER lease_stays BEFORE DELETE ON lease BEGIN SELECT RAISE(ABORT, 'the row of lease stays'); END;

-- Records of an upstream system that could not be stored as they were answered, and are counted until they are. They are asked for
-- again when they are due; NULL: never by itself. `asked_stamp` is the stamp of the last question.
CREATE TABLE set_aside (
  system   TEXT NOT NULL,
  kind     TEXT NOT NULL,
  id       TEXT NOT NULL,
  reason   TEXT NOT NULL,
  asked_stamp INTEGER NOT NULL,
  due_at   INTEGER,
  first_at INTEGER NOT NULL,
  last_at  INTEGER NOT NULL,
  tries    INTEGER NOT NULL CHECK (tries > 0),
  PRIMARY KEY (system, kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX set_aside_by_id ON set_aside (id);

-- Receivers of webhooks: `cursor` is the last change of the feed that is delivered. `customer_ids` is JSON; NULL: every customer.
CREATE TABLE outgoing_webhooks (
  id           TEXT NOT NULL PRIMARY KEY,
  url          TEXT NOT NULL,
  customer_ids TEXT,
  secret       TEXT NOT NULL,
  private_key  TEXT NOT NULL,
  cursor       INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
  attempts     INTEGER NOT NULL CHECK (attempts >= 0),
  next_at      INTEGER,
  error        TEXT,
  created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What lists of everything looked at again, an hour and a system a row, and what of it they had to correct though nothing
-- had announced it.
CREATE TABLE rechecks (
  system    TEXT NOT NULL,
  hour      INTEGER NOT NULL,
  checked   INTEGER NOT NULL,
  corrected INTEGER NOT NULL,
  PRIMARY KEY (system, hour)
) STRICT, WITHOUT ROWID;

-- Invoices that a list corrected, and of which an event may be on its way. They count once none came.
CREATE TABLE corrections (
  id          TEXT NOT NULL PRIMARY KEY,
  customer_id TEXT NOT NULL,
  found_at    INTEGER NOT NULL
) STRICT;

-- For people with sqlite3: no statement of the program reads it.
CREATE VIEW invoices_readable AS
SELECT
  customer_id,
  id,
  json_extract(summary, '$.number') AS number,
  status,
  CASE
    WHEN currency IN ('bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf', 'xof', 'xpf')
      THEN total_cents
    WHEN currency IN ('bhd', 'jod', 'kwd', 'omr', 'tnd')
      THEN printf('%s%d.%03d', iif(total_cents < 0, '-', ''), abs(total_cents) / 1000, abs(total_cents) % 1000)
    ELSE printf('%s%d.%02d', iif(total_cents < 0, '-', ''), abs(total_cents) / 100, abs(total_cents) % 100)
  END || ' ' || upper(currency) AS total,
  strftime('%Y-%m-%dT%H:%M:%SZ', issued_at / 1000, 'unixepoch') AS issued_at,
  json_extract(document, '$.number') AS document_number,
  ix_status,
  json_extract(summary, '$.ix_sync_state') AS ix_sync_state
FROM invoices;
