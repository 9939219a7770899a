-- Version 3: removed domains, and which certificates the proxy asked for.

-- Domains that were removed within the last half a year. Their DNS records may still lead here.
CREATE TABLE removed_domains (
    name       TEXT    PRIMARY KEY,
    -- Unix time, seconds.
    removed_at INTEGER NOT NULL,
    -- When DNS was last asked: Unix time, seconds. NULL: not since the removal.
    checked_at INTEGER
) STRICT, WITHOUT ROWID;

-- How often the proxy asked whether it may make a certificate. Written once a minute.
CREATE TABLE certificate_requests (
    -- A domain of the project; empty: all other names together.
    name    TEXT    PRIMARY KEY,
    allowed INTEGER NOT NULL,
    denied  INTEGER NOT NULL,
    -- Unix time, seconds.
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
