CREATE TABLE newest_retries (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    records BLOB    NOT NULL CHECK (length(records) % 40 = 0)
) STRICT;
CREATE TABLE older_retries (
    key         BLOB    PRIMARY KEY CHECK (length(key) = 16),
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    pet         INTEGER NOT NULL,
    at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO older_retries (key, fingerprint, pet, at) SELECT key, fingerprint, pet, at FROM retries ORDER BY key;
INSERT INTO newest_retries (at, records) SELECT at, x'' FROM retries ORDER BY id DESC LIMIT 1;
DROP TABLE retries;
