//! The statements that read the project: its plan, its deploys, its domains and their redirects. `change.rs` has
//! those that write.

mod change;

use std::str::FromStr;

use rusqlite::params;
use rusqlite::types::Type;

use super::{Database, Row, StoreError};
use crate::model::{Deploy, Domain, Plan, Redirect};

const DOMAIN: &str =
    "SELECT name, state, since, reason, message, added_at, checked_at, is_primary FROM domains";

fn domain(row: &Row<'_>) -> rusqlite::Result<Domain> {
    Ok(Domain {
        name: row.get(0)?,
        state: word(row, 1)?,
        since: row.get(2)?,
        reason: row.get(3)?,
        message: row.get(4)?,
        added_at: row.get(5)?,
        checked_at: row.get(6)?,
        is_primary: row.get(7)?,
    })
}

/// A word that the schema allows in a column.
fn word<T: FromStr<Err = String>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|expected: String| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, expected.into())
    })
}

fn redirect(row: &Row<'_>) -> rusqlite::Result<Redirect> {
    Ok(Redirect { from: row.get(0)?, to: row.get(1)?, status: row.get(2)? })
}

/// What reads the project. Each method fails if the database cannot be read.
impl Database {
    /// The plan that is paid for.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        let plan = self.first("SELECT plan FROM project", &[], |row| word(row, 0))?;
        Ok(plan.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// Every domain, ordered by name.
    pub fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        self.all(&format!("{DOMAIN} ORDER BY name"), domain)
    }

    /// The domain with this name, in A-labels and lower case.
    pub fn domain(&self, name: &str) -> Result<Option<Domain>, StoreError> {
        self.first(&format!("{DOMAIN} WHERE name = ?1"), params![name], domain)
    }

    /// The name of the primary domain.
    pub fn primary(&self) -> Result<Option<String>, StoreError> {
        self.first("SELECT name FROM domains WHERE is_primary = 1", &[], |row| row.get(0))
    }

    /// Every redirect, ordered by its source.
    pub fn redirects(&self) -> Result<Vec<Redirect>, StoreError> {
        self.all("SELECT source, target, status FROM redirects ORDER BY source", redirect)
    }

    /// The redirect from this domain.
    pub fn redirect(&self, from: &str) -> Result<Option<Redirect>, StoreError> {
        self.first("SELECT source, target, status FROM redirects WHERE source = ?1", params![from], redirect)
    }

    /// The deploys that are kept, the newest first.
    pub fn deploys(&self) -> Result<Vec<Deploy>, StoreError> {
        self.all(
            "SELECT d.id, d.deployed_at, count(f.path), ifnull(sum(length(f.content)), 0),
                    d.id IS (SELECT deploy FROM project)
             FROM deploys AS d LEFT JOIN deploy_files AS f ON f.deploy = d.id
             WHERE d.deployed_at IS NOT NULL GROUP BY d.id ORDER BY d.id DESC",
            |row| {
                Ok(Deploy {
                    id: row.get(0)?,
                    deployed_at: row.get(1)?,
                    files: row.get(2)?,
                    bytes: row.get(3)?,
                    is_live: row.get(4)?,
                })
            },
        )
    }

    /// Whether the site was ever deployed.
    pub fn is_deployed(&self) -> Result<bool, StoreError> {
        self.one("SELECT deploy IS NOT NULL FROM project")
    }

    /// Whether the live deploy has any static file.
    pub fn has_files(&self) -> Result<bool, StoreError> {
        self.one("SELECT EXISTS (SELECT 1 FROM deploy_files WHERE deploy = (SELECT deploy FROM project))")
    }

    /// The static file of the live deploy at `path`, or else at `other`, without its content.
    pub fn file(&self, path: &str, other: &str) -> Result<Option<FileInfo>, StoreError> {
        self.first(
            "SELECT rowid, path, content_type, tag, length(content), length(gzip) FROM deploy_files
             WHERE deploy = (SELECT deploy FROM project) AND path IN (?1, ?2) ORDER BY path <> ?1 LIMIT 1",
            params![path, other],
            |row| {
                Ok(FileInfo {
                    row: row.get(0)?,
                    path: row.get(1)?,
                    content_type: row.get(2)?,
                    tag: row.get(3)?,
                    length: row.get(4)?,
                    gzip_length: row.get(5)?,
                })
            },
        )
    }

    /// The content of a file, in gzip or as it is.
    ///
    /// # Errors
    /// If the database cannot be read, or the file was removed since it was found.
    pub fn content(&self, file: &FileInfo, gzip: bool) -> Result<Vec<u8>, StoreError> {
        let column = if gzip { "gzip" } else { "content" };
        let sql = format!("SELECT {column} FROM deploy_files WHERE rowid = ?1");
        let content = self.first(&sql, params![file.row], |row| row.get(0))?;
        Ok(content.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }
}

/// A static file without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    row: i64,
    /// The path in requests, without percent-encoding.
    pub path: String,
    /// The media type.
    pub content_type: String,
    /// The entity tag without its quotes.
    pub tag: String,
    /// The bytes of its content.
    pub length: u32,
    /// The bytes of its content in gzip, if it is stored in that form too.
    pub gzip_length: Option<u32>,
}
