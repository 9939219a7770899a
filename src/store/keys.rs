//! The statements on API keys.

use rusqlite::params;

use super::{Database, Row, StoreError, Writer};
use crate::model::{ApiKey, Digest, KeyScope};

const COLUMNS: &str = "digest, name, read_only, is_admin, created_at, expires_at, last_used_at";

fn api_key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        digest: row.get(0)?,
        name: row.get(1)?,
        scope: match (row.get(2)?, row.get(3)?) {
            (true, _) => KeyScope::ReadOnly,
            (false, false) => KeyScope::Full,
            (false, true) => KeyScope::Admin,
        },
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
        last_used_at: row.get(6)?,
    })
}

impl Database {
    /// The key with this digest, expired or not.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn key(&self, digest: &Digest) -> Result<Option<ApiKey>, StoreError> {
        self.first(&format!("SELECT {COLUMNS} FROM api_keys WHERE digest = ?1"), params![digest], api_key)
    }

    /// Every key, by name, the newest of a name last.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.all(&format!("SELECT {COLUMNS} FROM api_keys ORDER BY name, id"), api_key)
    }

    /// Whether there has ever been a key, even if it was revoked since.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn has_had_keys(&self) -> Result<bool, StoreError> {
        self.one("SELECT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'api_keys')")
    }
}

impl Writer {
    /// Adds a key in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        let insert = "INSERT INTO api_keys (digest, name, read_only, is_admin, created_at, expires_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (read_only, is_admin) = (key.scope == KeyScope::ReadOnly, key.scope == KeyScope::Admin);
        let values = params![key.digest, key.name, read_only, is_admin, key.created_at, key.expires_at];
        self.change(insert, values).map(drop)
    }

    /// Makes the keys of this name expire at this Unix time at the latest, in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn expire_keys(&mut self, name: &str, at: i64) -> Result<(), StoreError> {
        let expire = "UPDATE api_keys SET expires_at = min(ifnull(expires_at, ?2), ?2) WHERE name = ?1";
        self.change(expire, params![name, at]).map(drop)
    }

    /// Deletes every key of this name and returns how many there were.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_keys(&mut self, name: &str) -> Result<usize, StoreError> {
        self.transact(|writer| writer.change("DELETE FROM api_keys WHERE name = ?1", params![name]))
    }

    /// Deletes the key with this digest.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_key(&mut self, digest: &Digest) -> Result<(), StoreError> {
        self.transact(|writer| writer.change("DELETE FROM api_keys WHERE digest = ?1", params![digest]))
            .map(drop)
    }

    /// Stores when keys were last used, in Unix time. Call it between batches. It skips keys that no longer
    /// exist, and times earlier than the stored ones. A time later than `now` counts as `now`, and a stored one as none.
    ///
    /// # Errors
    /// If the database cannot be written; then nothing is changed.
    pub fn keep_uses(&mut self, uses: &[(Digest, i64)], now: i64) -> Result<(), StoreError> {
        let keep = "UPDATE api_keys SET last_used_at = max(iif(last_used_at <= ?3, last_used_at, ?2), ?2) \
            WHERE digest = ?1";
        self.transact(|writer| {
            uses.iter().try_for_each(|(digest, at)| {
                writer.change(keep, params![digest, at.min(&now), now]).map(drop)
            })
        })
    }
}
