-- Keys that sign customer links: the public half alone. `x` is the Ed25519 point, in base64url, as a JWK holds it.
CREATE TABLE keys (
  kid        TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  x          TEXT NOT NULL,
  customers  TEXT,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
