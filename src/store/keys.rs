//! The statements on API keys.

use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};

use super::{Database, StoreError, Writer};

/// The SHA-256 digest of a key's text.
pub type Digest = [u8; 32];

/// What the database knows of a key: all but the key itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub digest: Digest,
    /// What the operator calls it.
    pub name: String,
    /// Whether it may only read.
    pub read_only: bool,
    /// Unix time, seconds.
    pub created_at: i64,
    /// Unix time, seconds, from which it is refused; `None`: never.
    pub expires_at: Option<i64>,
}

impl ApiKey {
    /// Whether the key is refused at this Unix time.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

const COLUMNS: &str = "digest, name, read_only, created_at, expires_at";

fn api_key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        digest: row.get(0)?,
        name: row.get(1)?,
        read_only: row.get(2)?,
        created_at: row.get(3)?,
        expires_at: row.get(4)?,
    })
}

fn insert(connection: &rusqlite::Connection, key: &ApiKey) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO api_keys (digest, name, read_only, created_at, expires_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key.digest, key.name, key.read_only, key.created_at, key.expires_at])?;
    Ok(())
}

impl Database {
    /// The key with this digest, expired or not.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn key(&self, digest: &Digest) -> Result<Option<ApiKey>, StoreError> {
        Ok(self
            .connection()?
            .prepare_cached(&format!("SELECT {COLUMNS} FROM api_keys WHERE digest = ?1"))?
            .query_row([digest], api_key)
            .optional()?)
    }

    /// Every key, by name, the newest of a name last; of one second, the one that lives longer.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let mut statement = self.connection()?.prepare(&format!(
            "SELECT {COLUMNS} FROM api_keys ORDER BY name, created_at, expires_at IS NULL, expires_at"
        ))?;
        let keys = statement.query_map([], api_key)?.collect::<rusqlite::Result<_>>()?;
        Ok(keys)
    }
}

impl Writer {
    /// Adds a key.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn insert_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        Ok(insert(&self.database.connection, key)?)
    }

    /// Adds a key, and has those of the same name expire at `old_expires_at` at the latest; both or
    /// neither.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn replace_key(&mut self, key: &ApiKey, old_expires_at: i64) -> Result<(), StoreError> {
        let transaction =
            self.database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(
            "UPDATE api_keys SET expires_at = min(ifnull(expires_at, ?2), ?2) WHERE name = ?1",
            params![key.name, old_expires_at],
        )?;
        insert(&transaction, key)?;
        Ok(transaction.commit()?)
    }

    /// Deletes every key of this name and returns how many there were.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn delete_keys(&mut self, name: &str) -> Result<usize, StoreError> {
        Ok(self.database.connection.execute("DELETE FROM api_keys WHERE name = ?1", [name])?)
    }
}
