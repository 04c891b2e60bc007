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
