//! The statements on API keys.

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::rows::{integer, text};
use super::{Reader, StoreError, Writer};
use crate::model::{ApiKey, Digest, KeyScope};

/// Every key, by name, the newest of a name last.
pub const KEYS: &str = "SELECT digest, name, read_only, is_admin, created_at, expires_at, last_used_at FROM api_keys \
    ORDER BY name, id";
const KEY: &str = "SELECT digest, name, read_only, is_admin, created_at, expires_at, last_used_at FROM api_keys \
    WHERE digest = ?1";

/// Makes a key expire at the Unix time `?2` at the latest.
pub const EXPIRE_KEY: &str =
    "UPDATE api_keys SET expires_at = min(ifnull(expires_at, ?2), ?2) WHERE digest = ?1";
const DELETE_KEY: &str = "DELETE FROM api_keys WHERE digest = ?1";
/// Stores when a key was last used. A stored time that is later than the present, `?3`, counts as none.
pub const KEEP_USE: &str = "UPDATE api_keys SET last_used_at = max(iif(last_used_at <= ?3, last_used_at, ?2), ?2) \
    WHERE digest = ?1";

/// Reads a key; `None` if its digest has the wrong length, so that nobody can use it. An invalid value of another
/// column counts as the one that permits least.
fn api_key(row: &Row<'_>) -> rusqlite::Result<Option<ApiKey>> {
    let Ok(digest) = row.get(0) else {
        return Ok(None);
    };
    Ok(Some(ApiKey {
        digest,
        name: text(row, 1)?.into_owned(),
        scope: KeyScope::of_columns(integer(row, 2)?, integer(row, 3)?),
        created_at: integer(row, 4)?.unwrap_or_default(),
        expires_at: match row.get_ref(5)? {
            ValueRef::Null => None,
            _ => Some(integer(row, 5)?.unwrap_or_default()),
        },
        last_used_at: integer(row, 6)?,
    }))
}

impl Reader {
    /// The key with this digest, expired or not.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn key(&self, digest: &Digest) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.first(KEY, params![digest], api_key)?.flatten())
    }

    /// Every key, by name, the newest of a name last.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.all(KEYS, api_key)?;
        Ok(keys.into_iter().flatten().collect())
    }

    /// Returns `true` if there has ever been a key, even if it was revoked since.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn has_had_keys(&self) -> Result<bool, StoreError> {
        self.one("SELECT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'api_keys')")
    }
}

impl Writer {
    /// Replaces all keys by these, in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn replace_keys(&mut self, keys: &[ApiKey]) -> Result<(), StoreError> {
        self.change("DELETE FROM api_keys", &[])?;
        keys.iter().try_for_each(|key| self.insert_key(key))
    }

    /// Adds a key in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        let insert = "INSERT INTO api_keys (digest, name, read_only, is_admin, created_at, expires_at) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (read_only, is_admin) = key.scope.columns();
        let values = params![
            key.digest,
            key.name,
            read_only,
            is_admin,
            key.created_at,
            key.expires_at
        ];
        self.change(insert, values).map(drop)
    }

    /// Makes the key with this digest expire at this Unix time at the latest, in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn expire_key(&mut self, digest: &Digest, at: i64) -> Result<(), StoreError> {
        self.change(EXPIRE_KEY, params![digest, at]).map(drop)
    }

    /// Deletes the key with this digest in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_key(&mut self, digest: &Digest) -> Result<(), StoreError> {
        self.change(DELETE_KEY, params![digest]).map(drop)
    }

    /// Stores within the batch when keys were last used, in Unix time. It skips keys that no longer exist, and times
    /// earlier than the stored ones. A time later than `now` counts as `now`, and a stored one as none.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn record_uses(&mut self, uses: &[(Digest, i64)], now: i64) -> Result<(), StoreError> {
        uses.iter().try_for_each(|(digest, at)| {
            self.change(KEEP_USE, params![digest, at.min(&now), now])
                .map(drop)
        })
    }
}
