CREATE TABLE retries (
    id          INTEGER PRIMARY KEY,
    key         BLOB    NOT NULL UNIQUE CHECK (length(key) = 16),
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    pet         INTEGER NOT NULL,
    at          INTEGER NOT NULL
) STRICT;
