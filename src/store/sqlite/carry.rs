//! What a restore does not take back in time: the API keys, and the highest ids.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Result, params_from_iter};

use super::backup::open;
use super::{Snapshot, cannot_open, schema};
use crate::error::Error;

const KEYS: &str = "SELECT id, digest, CAST(name AS BLOB), read_only, is_admin, created_at, expires_at, last_used_at FROM api_keys";
const INSERT_KEY: &str = "INSERT INTO api_keys \
    (id, digest, name, read_only, is_admin, created_at, expires_at, last_used_at) VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?, ?)";
const HIGHEST: &str = "SELECT seq, name FROM sqlite_sequence WHERE name IN ('pets', 'api_keys', 'deploys')";
const RAISE: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = ?2";
/// There is a row for a table only after its first insert (`sqlite.org/autoinc.html`).
const ADD: &str = "INSERT INTO sqlite_sequence (seq, name) SELECT ?1, ?2 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?2)";

/// Gives a copy the highest ids of the database that it replaces, so that none is given again, and on request its keys.
/// Returns whether the copy has its keys now. A copy of another database stays as it is, and so does one whose old
/// database cannot be read.
///
/// # Errors
/// If the copy cannot be written.
pub fn carry(old: &Connection, copy: &Path, with_keys: bool) -> std::result::Result<bool, Error> {
    let read = || Ok((schema::identity(old)?, rows(old, KEYS)?, rows(old, HIGHEST)?));
    let Ok::<_, rusqlite::Error>((identity, keys, highest)) = read() else { return Ok(false) };
    let write = || -> Result<bool> {
        let mut copy = open(copy)?;
        if identity.is_none() || schema::identity(&copy)? != identity {
            return Ok(false);
        }
        let transaction = copy.transaction()?;
        if with_keys {
            transaction.execute("DELETE FROM api_keys", [])?;
            for key in &keys {
                transaction.execute(INSERT_KEY, params_from_iter(key))?;
            }
        }
        for sequence in &highest {
            transaction.execute(RAISE, params_from_iter(sequence))?;
            transaction.execute(ADD, params_from_iter(sequence))?;
        }
        transaction.commit()?;
        Ok(with_keys)
    };
    write().map_err(|error| cannot_open(copy, error))
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
