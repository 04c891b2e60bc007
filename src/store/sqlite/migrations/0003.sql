-- Keys that sign customer links: the public half alone. `x` is the Ed25519 point, in base64url, as a JWK holds it.
CREATE TABLE keys (
  kid        TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  x          TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- Comparisons of stored invoices with their sources, and how many of these differed: a row an hour.
CREATE TABLE drift (
  hour      INTEGER NOT NULL PRIMARY KEY,
  compared  INTEGER NOT NULL,
  differing INTEGER NOT NULL
) STRICT;

-- What an accountant misses: paid invoices without a document in force, where one is needed.
CREATE INDEX invoices_uncertified ON invoices (issued_at)
  WHERE status = 'paid' AND (ix_status IS NULL OR ix_status IN ('draft', 'canceled', 'deleted'))
    AND summary NOT LIKE '%"ix_sync_state":"ignored"%';
