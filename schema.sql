-- The schema of a petstore database: every table, column and index, and what it is for. A new database is made by
-- this file.

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
    -- 1: the key may only read; other requests get 403.
    read_only    INTEGER NOT NULL CHECK (read_only IN (0, 1)),
    -- 1: the key may change the settings of the project as well.
    is_admin     INTEGER NOT NULL DEFAULT 0 CHECK (is_admin IN (0, 1)),
    -- Unix time, seconds.
    created_at   INTEGER NOT NULL,
    -- Unix time, seconds, from which the key is refused. NULL: never.
    expires_at   INTEGER,
    -- Unix time, seconds, of the last request with the key, written once an hour and when the service
    -- stops. NULL: never.
    last_used_at INTEGER
) STRICT;

-- Every deploy that is kept. AUTOINCREMENT: no number is used again.
CREATE TABLE deploys (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Unix time, seconds, when it was whole. NULL: its files are still coming, or never came.
    deployed_at INTEGER
) STRICT;

-- The project: one row.
CREATE TABLE project (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    -- What is paid for. Domains need more than 'free'.
    plan   TEXT    NOT NULL CHECK (plan = 'free' OR plan = 'pro' OR plan = 'enterprise'),
    -- The deploy that is served. NULL: there was none yet.
    deploy INTEGER REFERENCES deploys (id)
) STRICT;
INSERT INTO project (id, plan) VALUES (1, 'free');

-- The static files of the deploys, served alongside the built-in site.
CREATE TABLE deploy_files (
    deploy       INTEGER NOT NULL REFERENCES deploys (id),
    -- As in a request, without percent-encoding, such as /guide/first.html.
    path         TEXT    NOT NULL,
    -- The media type (RFC 9110, section 8.3).
    content_type TEXT    NOT NULL,
    -- The entity tag without its quotes (RFC 9110, section 8.8.3).
    tag          TEXT    NOT NULL,
    -- Last, so that what is in front can be read without them.
    content      BLOB    NOT NULL,
    -- The content in gzip (RFC 1952). NULL: that would not be smaller.
    gzip         BLOB,
    PRIMARY KEY (deploy, path)
) STRICT;

-- The domains of the project. Times are Unix time in seconds.
CREATE TABLE domains (
    -- In A-labels and lower case (RFC 5890, section 2.3.2.1).
    name        TEXT    PRIMARY KEY,
    state       TEXT    NOT NULL CHECK (state = 'pending_dns' OR state = 'verified' OR state = 'active'
                                        OR state = 'certificate_delayed' OR state = 'dns_changed'),
    -- When it entered this state. That a certificate is delayed after 30 minutes follows from it and is not written; the
    -- state is for CAA records that forbid the certificate.
    since       INTEGER NOT NULL,
    -- Why it is, or why the last look came to nothing: a word for programs and a sentence for people.
    -- NULL: there is nothing to say.
    reason      TEXT,
    message     TEXT,
    added_at    INTEGER NOT NULL,
    -- When DNS was last asked. NULL: never.
    checked_at  INTEGER,
    -- 1: the one that the others stand for.
    is_primary  INTEGER NOT NULL CHECK (is_primary IN (0, 1))
) STRICT, WITHOUT ROWID;

-- At most one is primary.
CREATE UNIQUE INDEX primary_domain ON domains (is_primary) WHERE is_primary = 1;

-- Domains that only lead to another name.
CREATE TABLE redirects (
    -- A domain of the project.
    source TEXT    PRIMARY KEY REFERENCES domains (name),
    -- The target of its requests: another domain of the project, or its name on the platform.
    target TEXT    NOT NULL,
    -- RFC 9110, section 15.4.
    status INTEGER NOT NULL CHECK (status IN (301, 302, 307, 308))
) STRICT, WITHOUT ROWID;

-- Imports, by their input, each written in the transaction of its pets.
CREATE TABLE imports (
    -- SHA-256 of the input.
    input       BLOB    PRIMARY KEY CHECK (length(input) = 32),
    -- Unix time, seconds.
    at          INTEGER NOT NULL,
    -- The least and the greatest id that its pets got.
    first_id    INTEGER NOT NULL,
    last_id     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The creates of the last 24 hours, or of more, that had an Idempotency-Key, so that sending one again makes no second
-- pet. Each is written in the transaction of its pet.
CREATE TABLE retries (
    -- The id of the pet, which may have been changed or deleted since. Ascending in the order of the creates, so that
    -- the oldest are found first.
    pet         INTEGER PRIMARY KEY,
    -- The first 16 bytes of a SHA-256 digest of the name of the API key and the Idempotency-Key. UNIQUE makes the index
    -- by which a create finds it.
    key         BLOB    NOT NULL UNIQUE CHECK (length(key) = 16),
    -- The XXH3 hash of what the body means (128 bits).
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    -- Unix time, seconds.
    at          INTEGER NOT NULL
) STRICT;

-- Whether changes of pets are recorded: one row once they were.
CREATE TABLE changes_kept (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    -- For how many seconds a change is kept at least. NULL: they are not recorded any more.
    seconds INTEGER,
    -- The record is whole after this id: changes up to it may be missing, or be of the time before a restore.
    from_id INTEGER NOT NULL
) STRICT;

-- The changes of pets, in the order of their commits. Each is written in the transaction of the change.
CREATE TABLE changes (
    -- One more than the last one, which is never removed, or than from_id.
    id              INTEGER PRIMARY KEY,
    -- Unix time, milliseconds.
    at              INTEGER NOT NULL,
    pet             INTEGER NOT NULL,
    -- The pet before and after. old_category_id is NULL: it was created; category_id is NULL: it was deleted.
    old_category_id INTEGER,
    category_id     INTEGER,
    old_status      TEXT,
    status          TEXT,
    -- The name of the API key, or the command. NULL: a program that embeds petstore.
    key             TEXT,
    -- Last, as they may be long.
    old_name        TEXT,
    name            TEXT
) STRICT;

-- Finds the history of a pet.
CREATE INDEX changes_by_pet ON changes (pet);
