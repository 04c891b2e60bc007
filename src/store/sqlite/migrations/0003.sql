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
INSERT INTO scopes SELECT DISTINCT tokens.id, value FROM tokens, json_each(customers);

-- Comparisons of the store with its sources, a row an hour: stored invoices that were compared, and how many differed; invoices of the
-- source that were looked for, and how many were missing; how many of both were put right, and how many near them.
CREATE TABLE drift (
  hour       INTEGER NOT NULL PRIMARY KEY,
  compared   INTEGER NOT NULL,
  differing  INTEGER NOT NULL,
  listed     INTEGER NOT NULL,
  missing    INTEGER NOT NULL,
  repaired   INTEGER NOT NULL,
  neighbours INTEGER NOT NULL
) STRICT;

-- What an accountant misses: paid invoices without a document in force, where one is needed.
CREATE INDEX invoices_uncertified ON invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';

-- What a large customer's invoices are found by, a day together. Made from them by the pass that follows. With row ids, because a
-- key that lies with so long a row is found by reading others of the kind.
DROP TABLE search_blocks;
CREATE TABLE search_days (
  customer_id TEXT NOT NULL,
  day         INTEGER NOT NULL,
  -- How many invoices it had when it was signed, and whether signs and words are those of its texts.
  signed_size INTEGER NOT NULL,
  is_signed   INTEGER NOT NULL,
  states      TEXT NOT NULL,
  marks       BLOB NOT NULL,
  parties     TEXT NOT NULL,
  texts       TEXT NOT NULL,
  PRIMARY KEY (customer_id, day)
) STRICT;
CREATE INDEX search_days_unsigned ON search_days (customer_id, day) WHERE is_signed = 0;
ALTER TABLE search_signs RENAME COLUMN first TO day;

-- Who is found by a word, on days of many invoices. A day's parts lie together, so that few pages change with it.
CREATE TABLE search_words (
  customer_id TEXT NOT NULL,
  day         INTEGER NOT NULL,
  part        INTEGER NOT NULL,
  bits        BLOB NOT NULL,
  PRIMARY KEY (customer_id, day, part)
) STRICT;
