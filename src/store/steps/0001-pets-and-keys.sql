-- Version 1 (PRAGMA user_version): pets and API keys. schema.sql has the schema as it is now.

-- Every pet of the inventory.
CREATE TABLE pets (
    -- Given by the service, ascending. AUTOINCREMENT: no id is ever used again,
    -- not even the one of the newest pet after it was deleted (sqlite.org/autoinc.html).
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Any Unicode text, empty included, kept to the letter.
    name        TEXT    NOT NULL,
    -- The category that the pet belongs to (categoryId); categories are kept elsewhere.
    category_id INTEGER NOT NULL,
    -- NULL: the pet was created without one. OR and not IN: for a list of three, SQLite would build
    -- a table in memory for every row that is written.
    status      TEXT    CHECK (status = 'available' OR status = 'pending' OR status = 'sold')
) STRICT;

-- Serves the pages of GET /v1/pets?status=…: within one status the entries of an index
-- stand in rowid order, so `status = ? AND id > ? ORDER BY id` reads just the page.
CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL;

-- The API keys. A key itself is never stored, only its digest.
CREATE TABLE api_keys (
    -- Ascending in the order of making. AUTOINCREMENT: sqlite_sequence says that there was a key,
    -- even after the last one was revoked.
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    -- SHA-256 of the key's text, 32 bytes. UNIQUE makes the index by which a request finds its key.
    digest       BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    -- What the operator calls it. A rotated key shares its name with its successor
    -- until the overlap ends.
    name         TEXT    NOT NULL,
    -- 1: the key may read only; a create gets 403.
    read_only    INTEGER NOT NULL CHECK (read_only IN (0, 1)),
    -- Unix time, seconds.
    created_at   INTEGER NOT NULL,
    -- Unix time, seconds, from which the key is refused. NULL: never.
    expires_at   INTEGER,
    -- Unix time, seconds, of the last request with the key, written once a minute. NULL: never.
    last_used_at INTEGER
) STRICT;
