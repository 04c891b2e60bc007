-- The invoices that the API reads. Some columns serve filters. `summary` is the JSON text that a list sends.
CREATE TABLE invoices (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  issued_at   INTEGER NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  ix_status   TEXT,
  currency    TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  -- Folded texts. A search finds `search_text` by any part, and the ids in `search_ids` by their beginning.
  search_text TEXT NOT NULL,
  search_ids  TEXT NOT NULL,
  summary     TEXT NOT NULL,
  -- Stamps in microseconds: before the payment platform was asked, and after it had answered.
  observed_stamp INTEGER NOT NULL,
  answered_stamp INTEGER NOT NULL CHECK (answered_stamp >= observed_stamp),
  -- `document` is the JSON text of the invoice's document. `credited_cents` is the sum of the document's credit notes in force.
  document       TEXT,
  credited_cents INTEGER NOT NULL CHECK (credited_cents >= 0),
  -- `payment` is JSON. Of an open invoice, `to_pay_cents` is the amount to pay, `due_date` its due day, and `in_favour_cents` the
  -- customer's credit.
  payment         TEXT NOT NULL,
  due_date        TEXT,
  to_pay_cents    INTEGER NOT NULL CHECK (to_pay_cents >= 0),
  in_favour_cents INTEGER NOT NULL CHECK (in_favour_cents >= 0),
  -- JSON that the parameter `expand` adds to a list.
  expanded_document TEXT NOT NULL,
  expanded_payment  TEXT NOT NULL,
  PRIMARY KEY (customer_id, id)
) STRICT;

-- The list's order with all columns of filters, searches and sums. Counting, skipping, searching and summing therefore read only this
-- index.
CREATE INDEX invoices_in_order
  ON invoices (customer_id, issued_at DESC, id DESC, status, ix_status, currency, total_cents, search_text, search_ids);

-- Invoices that may still change or be deleted at their source, so they are read again.
CREATE INDEX invoices_unsettled ON invoices (customer_id, id)
  WHERE status IN ('draft', 'open', 'uncollectible');

-- Paid invoices that need a document and have none in force.
CREATE INDEX invoices_uncertified ON invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';

CREATE INDEX invoices_credited ON invoices (customer_id, currency, credited_cents)
  WHERE status = 'open' AND credited_cents <> 0;

-- Open invoices of a customer, earliest due day first.
CREATE INDEX invoices_open ON invoices (customer_id, due_date, currency, id, to_pay_cents, in_favour_cents)
  WHERE status = 'open';

-- Finds customers by the e-mail address with which they sign in.
CREATE INDEX invoices_by_email ON invoices (lower(json_extract(summary, '$.customer_email')));

-- Payments of each invoice, paid or still to pay. The rows are derived from `invoices.payment`.
CREATE TABLE invoice_payments (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  payment_id  TEXT NOT NULL,
  PRIMARY KEY (customer_id, invoice_id, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX invoice_payments_by_payment ON invoice_payments (payment_id);

-- Entries of the customers' statements of account, derived from the invoices. `entry` is the JSON of one entry. `place` is its position
-- within its invoice.
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
-- The order of statements, with all columns that their sums need.
CREATE INDEX account_entries_in_order ON account_entries (customer_id, day, invoice_id, place, currency, cents);

-- Tombstones of invoices that were deleted at their source. A tombstone keeps an older answer from storing the invoice again.
CREATE TABLE tombstones (
  customer_id TEXT NOT NULL,
  id          TEXT NOT NULL,
  observed_stamp INTEGER NOT NULL,
  answered_stamp INTEGER NOT NULL CHECK (answered_stamp >= observed_stamp),
  PRIMARY KEY (customer_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_by_id ON tombstones (id);

-- A separate table keeps the rows of `invoices` small for lists. An invoice without a row has unknown lines.
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
  -- 1 when the customer has counters in `counters`. Only customers with many invoices have counters.
  counted     INTEGER NOT NULL DEFAULT 0 CHECK (counted IN (0, 1))
) STRICT;

-- The feed of changes. A customer's changes are ordered by `version`. `previous` is the version of the change before, so that a reader
-- notices pruned changes. All changes of one transaction form a commit. `place` is the position within the commit.
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

-- Commits in their order. `seq` is the sequence number of the commit's last change, and `n` the number of its changes.
CREATE TABLE commits (
  seq       INTEGER NOT NULL PRIMARY KEY,
  commit_id INTEGER NOT NULL UNIQUE,
  n         INTEGER NOT NULL CHECK (n > 0)
) STRICT;

-- One row with the sequence numbers of the latest change and of the latest pruned change. A commit adds the number of its changes, or takes
-- the microseconds since 1970 when that number is higher.
CREATE TABLE feed (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  last_seq   INTEGER NOT NULL,
  pruned_seq INTEGER NOT NULL,
  CHECK (pruned_seq <= last_seq)
) STRICT;
INSERT INTO feed (last_seq, pruned_seq) VALUES (0, 0);
CREATE TRIGGER feed_stays BEFORE DELETE ON feed BEGIN SELECT RAISE(ABORT, 'the row of feed stays'); END;

-- Number and total of a customer's invoices by UTC month (YYYY-MM), status, currency and ix_status. `ix` is '=' followed by the ix_status,
-- or '-' when there is none.
CREATE TABLE counters (
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

-- One row. `synced_at` is the time up to which the records are current, and every answer contains it. `life` changes when the store is
-- created, copied or restored. ETags and cursors of an earlier life are invalid.
CREATE TABLE freshness (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  synced_at INTEGER,
  life      TEXT NOT NULL
) STRICT;
INSERT INTO freshness (synced_at, life) VALUES (NULL, lower(hex(randomblob(6))));
CREATE TRIGGER freshness_stays BEFORE DELETE ON freshness BEGIN SELECT RAISE(ABORT, 'the row of freshness stays'); END;

-- The documents of each invoice. `claimed_id` is the document that the payment platform's metadata claims, and `ix_id` the document that
-- the invoice has.
CREATE TABLE links (
  customer_id TEXT NOT NULL,
  invoice_id  TEXT NOT NULL,
  state       TEXT CHECK (state IN ('creating', 'synced', 'failed', 'ignored')),
  claimed_id  INTEGER,
  ix_id       INTEGER,
  claim       TEXT NOT NULL,
  -- The invoice's printed number, because a document may refer to it.
  number      TEXT,
  PRIMARY KEY (customer_id, invoice_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_invoice ON links (invoice_id);
CREATE INDEX links_by_claim ON links (claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX links_by_document ON links (ix_id) WHERE ix_id IS NOT NULL;
CREATE INDEX links_by_number ON links (number) WHERE number IS NOT NULL;
CREATE INDEX links_creating ON links (customer_id, invoice_id) WHERE state = 'creating';

-- Documents of the invoicing system. A document that was requested and never found has no body.
CREATE TABLE documents (
  id          INTEGER NOT NULL PRIMARY KEY,
  status      TEXT,
  reference   TEXT,
  uid         TEXT,
  date        TEXT,
  client_id   INTEGER,
  -- The client's tax ID when the document was first seen issued, '' when it had none. Clients may be edited later. NULL for a draft, or
  -- when the client was not read.
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

-- Related documents and QR code of each document that an invoice has. They are requested again after a change of the document.
CREATE TABLE document_relations (
  id          INTEGER NOT NULL PRIMARY KEY,
  relations   TEXT,
  observed_stamp INTEGER NOT NULL
) STRICT;
CREATE INDEX document_relations_due ON document_relations (observed_stamp, id);

-- The latest events of each invoice, with their outcomes.
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

-- One row with the stamp of the latest observation.
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

-- Public halves of the keys that sign customer links. `x` is the Ed25519 point in base64url, as in a JWK.
CREATE TABLE keys (
  kid        TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  x          TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- The customers of tokens and keys that do not cover all customers. A request looks up one customer here.
CREATE TABLE scopes (
  id          TEXT NOT NULL,
  customer_id TEXT NOT NULL,
  PRIMARY KEY (id, customer_id)
) STRICT, WITHOUT ROWID;

-- The account of each upstream system. All records of a system come from its account.
CREATE TABLE bound_accounts (
  system    TEXT NOT NULL PRIMARY KEY,
  account   TEXT NOT NULL,
  bound_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row with the process that may write as the connector.
CREATE TABLE lease (
  only_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_one = 1),
  holder TEXT,
  epoch  INTEGER NOT NULL,
  beats  INTEGER NOT NULL
) STRICT;
INSERT INTO lease (holder, epoch, beats) VALUES (NULL, 0, 0);
CREATE TRIGGER lease_stays BEFORE DELETE ON lease BEGIN SELECT RAISE(ABORT, 'the row of lease stays'); END;

-- Records of an upstream system that could not be stored. They are counted until they are stored. `due_at` is the time of the next try,
-- NULL when there is none. `asked_stamp` is the stamp of the last request.
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

-- Receivers of webhooks. `cursor` is the sequence number of the last delivered change. `customer_ids` is a JSON list, NULL for every
-- customer.
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

-- Results of full lists by system and hour: the number of records checked, and the number corrected although no event had announced a
-- change.
CREATE TABLE rechecks (
  system    TEXT NOT NULL,
  hour      INTEGER NOT NULL,
  checked   INTEGER NOT NULL,
  corrected INTEGER NOT NULL,
  PRIMARY KEY (system, hour)
) STRICT, WITHOUT ROWID;

-- Invoices that a full list corrected and whose event may still arrive. They count as corrected when no event arrives.
CREATE TABLE corrections (
  id          TEXT NOT NULL PRIMARY KEY,
  customer_id TEXT NOT NULL,
  found_at    INTEGER NOT NULL
) STRICT;

-- A view for people who use sqlite3. The program does not read it.
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
