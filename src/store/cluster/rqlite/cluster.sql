-- What a database of a cluster has besides schema.sql.

-- The last batch of each writer. A writer counts its batches, so one that arrives again, however late, is found out.
CREATE TABLE IF NOT EXISTS cluster_batches (
    -- Ascending in the order of the writers' first batches. A writer's row is removed once 100,000 newer ones exist,
    -- even if it still writes.
    id         INTEGER PRIMARY KEY,
    -- 32 random hexadecimal digits.
    writer     TEXT    NOT NULL UNIQUE,
    -- The number of its last batch.
    batch      INTEGER NOT NULL,
    -- The first id that a pet of that batch could have.
    first      INTEGER NOT NULL,
    -- For each compare-and-set of that batch, in their order: 1 if it has found what it expected, else 0.
    fits       TEXT    NOT NULL DEFAULT '',
    -- Always 1. To refuse a batch, a statement writes NULL, which NOT NULL rejects: see request.rs.
    is_current INTEGER NOT NULL
) STRICT;

-- One row: how often something was changed other than by a create. Triggers count, so that the changes of other
-- programs count too.
CREATE TABLE IF NOT EXISTS cluster_changes (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    changes INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO cluster_changes (id, changes) VALUES (1, 0);
