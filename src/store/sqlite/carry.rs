//! What a restore does not take back in time: the API keys, and the highest ids.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params_from_iter};

use super::backup::open;
use super::{Snapshot, cannot_open, schema};
use crate::base::error::Error;

/// A name that is no UTF-8 is carried too.
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

/// Gives a copy the highest ids of the database that it replaces, so that none is given again, and on request its keys.
/// Returns whether the copy has its keys now. A copy of another database stays as it is. What cannot be read of a
/// damaged database is told, and the rest is carried; its keys only if it tells whose they are.
///
/// # Errors
/// If the copy cannot be written.
pub fn carry(old: &Connection, copy: &Path, with_keys: bool) -> std::result::Result<bool, Error> {
    let identity = schema::identity(old);
    let write = || -> Result<bool> {
        let mut copy = open(copy)?;
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

fn rows(connection: &Connection, sql: &str) -> Result<Vec<Vec<Value>>> {
    let mut select = connection.prepare(sql)?;
    let columns = select.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|column| row.get(column)).collect();
    select.query_map([], row)?.collect()
}

impl Snapshot {
    /// What tells this database and its copies from others; `None` if that cannot be read.
    pub fn identity(&self) -> Option<String> {
        schema::identity(&self.connection).ok().flatten()
    }
}
