//! The statements that read the project: its plan, its deploys, its domains and their redirects. `change.rs` has
//! those that write.

mod change;

use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

use super::{Database, StoreError};
use crate::model::{Deploy, Domain, Plan, Reason, Redirect};

/// Reads the project.
pub struct ProjectReads<'c>(&'c Connection);

impl Database {
    /// Reads the project.
    ///
    /// # Errors
    /// If the database file was moved or deleted.
    pub fn project(&self) -> Result<ProjectReads<'_>, StoreError> {
        Ok(ProjectReads(self.connection()?))
    }
}

const DOMAIN: &str =
    "SELECT name, state, since, reason, message, added_at, checked_at, is_primary FROM domains";

fn domain(row: &Row<'_>) -> rusqlite::Result<Domain> {
    let reason: (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
    Ok(Domain {
        name: row.get(0)?,
        state: word(row, 1)?,
        since: row.get(2)?,
        reason: reason.0.map(|code| Reason { code, message: reason.1.unwrap_or_default() }),
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

impl ProjectReads<'_> {
    /// The plan that is paid for.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        Ok(self.0.prepare_cached("SELECT plan FROM project")?.query_row([], |row| word(row, 0))?)
    }

    /// Every domain, ordered by name.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        let mut statement = self.0.prepare_cached(&format!("{DOMAIN} ORDER BY name"))?;
        Ok(statement.query_map([], domain)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The domain with this name, in A-labels and lower case.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn domain(&self, name: &str) -> Result<Option<Domain>, StoreError> {
        let mut statement = self.0.prepare_cached(&format!("{DOMAIN} WHERE name = ?1"))?;
        Ok(statement.query_row([name], domain).optional()?)
    }

    /// The name of the primary domain.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn primary(&self) -> Result<Option<String>, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT name FROM domains WHERE is_primary = 1")?;
        Ok(statement.query_row([], |row| row.get(0)).optional()?)
    }

    /// Every redirect, ordered by its source.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn redirects(&self) -> Result<Vec<Redirect>, StoreError> {
        let mut statement =
            self.0.prepare_cached("SELECT source, target, status FROM redirects ORDER BY source")?;
        Ok(statement.query_map([], redirect)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The redirect from this domain.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn redirect(&self, from: &str) -> Result<Option<Redirect>, StoreError> {
        let mut statement =
            self.0.prepare_cached("SELECT source, target, status FROM redirects WHERE source = ?1")?;
        Ok(statement.query_row([from], redirect).optional()?)
    }

    /// The deploys that are kept, the newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn deploys(&self) -> Result<Vec<Deploy>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT d.id, d.deployed_at, count(f.path), ifnull(sum(length(f.content)), 0),
                    d.id IS (SELECT deploy FROM project)
             FROM deploys AS d LEFT JOIN deploy_files AS f ON f.deploy = d.id
             WHERE d.deployed_at IS NOT NULL GROUP BY d.id ORDER BY d.id DESC",
        )?;
        let deploy = |row: &Row| {
            Ok(Deploy {
                id: row.get(0)?,
                deployed_at: row.get(1)?,
                files: row.get(2)?,
                bytes: row.get(3)?,
                is_live: row.get(4)?,
            })
        };
        Ok(statement.query_map([], deploy)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether the site was ever deployed.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn is_deployed(&self) -> Result<bool, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT deploy IS NOT NULL FROM project")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// The static file of the live deploy at `path`, or else at `other`, without its content.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn file(&self, path: &str, other: &str) -> Result<Option<FileInfo>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT rowid, path, content_type, tag, length(gzip) IS NOT NULL FROM deploy_files
             WHERE deploy = (SELECT deploy FROM project) AND path IN (?1, ?2) ORDER BY path <> ?1 LIMIT 1",
        )?;
        let file = |row: &Row| {
            Ok(FileInfo {
                row: row.get(0)?,
                path: row.get(1)?,
                content_type: row.get(2)?,
                tag: row.get(3)?,
                has_gzip: row.get(4)?,
            })
        };
        Ok(statement.query_row([path, other], file).optional()?)
    }

    /// The content of a file, in gzip or as it is.
    ///
    /// # Errors
    /// If the database cannot be read, or the file was removed since it was found.
    pub fn content(&self, file: &FileInfo, gzip: bool) -> Result<Vec<u8>, StoreError> {
        let column = if gzip { "gzip" } else { "content" };
        let mut statement =
            self.0.prepare_cached(&format!("SELECT {column} FROM deploy_files WHERE rowid = ?1"))?;
        Ok(statement.query_row([file.row], |row| row.get(0))?)
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
    /// Whether its content is stored in gzip as well.
    pub has_gzip: bool,
}
