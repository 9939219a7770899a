-- Version 2: the published project site with its deploys, domains and redirects, and keys of the admin scope.

-- 1: the key may change the settings of the project as well.
ALTER TABLE api_keys ADD COLUMN is_admin INTEGER NOT NULL DEFAULT 0 CHECK (is_admin IN (0, 1));

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

-- The static files of the deploys, beside the built-in site.
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
    -- Since when it is in this state.
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
    -- Where its requests are sent: another domain of the project, or its name on the platform.
    target TEXT    NOT NULL,
    -- RFC 9110, section 15.4.
    status INTEGER NOT NULL CHECK (status IN (301, 302, 307, 308))
) STRICT, WITHOUT ROWID;
