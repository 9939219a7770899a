//! The SQL of a restore: locks the old database (step 2 of `ops/maintenance/restore.rs`), and carries over to the
//! copy what a restore does not turn back: the API keys and the highest ids (step 3).

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::backup::open_copy;
use super::connection::{cannot_open, connect};
use super::schema;
use crate::base::error::{Error, ErrorKind as Kind};

/// As bytes, so that a name that is not UTF-8 is carried over too.
const KEYS: &str = "SELECT id, digest, CAST(name AS BLOB), read_only, is_admin, created_at, expires_at, last_used_at \
    FROM api_keys";
const INSERT_KEY: &str = "INSERT INTO api_keys \
    (id, digest, name, read_only, is_admin, created_at, expires_at, last_used_at) \
    VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?, ?)";
const HIGHEST: &str = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1";
/// The tables that never give an id twice.
const NUMBERED: [&str; 3] = ["pets", "api_keys", "deploys"];
const RAISE: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = ?2";
/// There is a row for a table only after its first insert (`sqlite.org/autoinc.html`).
const ADD: &str = "INSERT INTO sqlite_sequence (seq, name) SELECT ?1, ?2 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?2)";

/// Locks a database, runs a checkpoint and removes SQLite's other files. Nobody else can read or write it as long as the
/// connection is open. `None` if it is too damaged; then nothing is changed. Call this while nobody in this process has
/// the database open.
///
/// # Errors
/// If another process uses it, or the disk is full or fails.
pub fn lock_old(path: &Path) -> Result<Option<Connection>, Error> {
    let merged = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        // Without this, SQLite would run a checkpoint when it closes a damaged database.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if schema::is_foreign(&connection)? {
            return Ok(Err(schema::foreign(path)));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // This takes the exclusive lock, runs a checkpoint and removes the log
        // (sqlite.org/pragma.html#pragma_journal_mode).
        let mode: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(if mode == "delete" { Ok(connection) } else { Err(used(path)) })
    });
    match merged {
        Ok(connection) => connection.map(Some),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(None),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Err(used(path)),
            _ => Err(cannot_open(path, error)),
        },
    }
}

/// Gives a copy the highest ids of the database that it replaces, so that none is given again, and on request its keys.
/// Returns true if the copy has its keys now. A copy of another database stays as it is. If the old database is
/// damaged, it warns of the parts that cannot be read, and carries over the others. It carries over keys only if the
/// identity can be read.
///
/// # Errors
/// If the copy cannot be written.
pub fn carry_over(old: &Connection, copy: &Path, with_keys: bool) -> Result<bool, Error> {
    let identity = schema::identity(old);
    let write = || -> rusqlite::Result<bool> {
        let mut copy = open_copy(copy)?;
        let is_of = schema::identity(&copy)?;
        if identity.as_ref().is_ok_and(|identity| identity.is_none() || *identity != is_of) {
            return Ok(false);
        }
        let transaction = copy.transaction()?;
        let keys = identity.and_then(|_| if with_keys { rows(old, KEYS).map(Some) } else { Ok(None) });
        let keys = keys.unwrap_or_else(|error| {
            log::warn!("the API keys of the old database cannot be read: {error}");
            None
        });
        if let Some(keys) = &keys {
            transaction.execute("DELETE FROM api_keys", [])?;
            for key in keys {
                transaction.execute(INSERT_KEY, params_from_iter(key))?;
            }
        }
        for table in NUMBERED {
            if let Some(id) = highest(old, table) {
                transaction.execute(RAISE, (id, table))?;
                transaction.execute(ADD, (id, table))?;
            }
        }
        transaction.commit()?;
        Ok(keys.is_some())
    };
    write().map_err(|error| cannot_open(copy, error))
}

/// The highest id that a table has given; `None` if it has given none, or that cannot be read.
fn highest(old: &Connection, table: &str) -> Option<i64> {
    old.query_row(HIGHEST, [table], |row| row.get(0)).unwrap_or_else(|error| {
        // At least those that are still there.
        let sql = format!("SELECT max(id) FROM {table}");
        let there: Option<i64> = old.query_row(&sql, [], |row| row.get(0)).ok().flatten();
        let above = there.map(|id| format!(" above {id}")).unwrap_or_default();
        log::warn!("the highest id of {table} in the old database cannot be read, so ids{above} may be given again: {error}");
        there
    })
}

fn rows(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut select = connection.prepare(sql)?;
    let columns = select.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|column| row.get(column)).collect();
    select.query_map([], row)?.collect()
}

fn used(path: &Path) -> Error {
    Error::new(Kind::DatabaseLocked, format!("another process uses the database {}", path.display()))
}
