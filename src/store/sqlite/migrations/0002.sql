-- The account of each upstream system that the records come from.
CREATE TABLE pins (
  system    TEXT NOT NULL PRIMARY KEY,
  account   TEXT NOT NULL,
  pinned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which process may write as the connector. One row.
CREATE TABLE lease (
  holder TEXT,
  epoch  INTEGER NOT NULL,
  beats  INTEGER NOT NULL
) STRICT;
INSERT INTO lease (holder, epoch, beats) VALUES (NULL, 0, 0);

-- Records of an upstream system that do not fit: tried again later, and counted until then.
CREATE TABLE set_aside (
  system   TEXT NOT NULL,
  kind     TEXT NOT NULL,
  id       TEXT NOT NULL,
  reason   TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at  INTEGER NOT NULL,
  tries    INTEGER NOT NULL,
  PRIMARY KEY (system, kind, id)
) STRICT, WITHOUT ROWID;

-- What is uncollectible may still be paid.
DROP INDEX invoices_unsettled;
CREATE INDEX invoices_unsettled ON invoices (customer_id, id)
  WHERE status IN ('draft', 'open', 'uncollectible');

-- Until when the records follow their sources: as of the moment at which the last round over events began, and at which
-- the last round of each kind over the documents did, once everything was read to its end. What is looked at again in
-- case something was missed does not count. An import counts only where nothing else brings records.
DROP VIEW current_freshness;
CREATE VIEW current_freshness AS
  SELECT CASE WHEN count(*) = count(succeeded_at)
    THEN coalesce(min(CASE WHEN name LIKE '%:events' OR name LIKE 'ix:%' THEN succeeded_at END), min(succeeded_at))
    END AS synced_at
  FROM streams
  WHERE name NOT LIKE '%:unsettled' AND name NOT LIKE '%:relist'
    AND (name <> 'import' OR NOT EXISTS (SELECT 1 FROM streams WHERE name <> 'import'));

-- By it, the last invoice of a party is known for it.
CREATE INDEX invoices_by_party ON invoices (customer_id, party_id);

-- In which blocks a word can be: a part of each one's sign. They are in the order in which they are looked through.
CREATE TABLE search_signs (
  customer_id TEXT NOT NULL,
  part        INTEGER NOT NULL,
  first       INTEGER NOT NULL,
  bits        BLOB NOT NULL,
  PRIMARY KEY (customer_id, part, first)
) STRICT, WITHOUT ROWID;
