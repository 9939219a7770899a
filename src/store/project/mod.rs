//! The statements that read the project: its plan, its deploys, its domains and their redirects. `change.rs` has
//! those that write.

mod change;

use rusqlite::{Row, params};

use super::rows::{integer, text, text_or_null};
use super::{Reader, StoreError};
use crate::model::{Deploy, Domain, DomainState, Plan, REDIRECT_STATUSES, Redirect};

const DOMAIN: &str =
    "SELECT name, state, since, reason, message, added_at, checked_at, is_primary FROM domains";
const REDIRECT: &str = "SELECT source, target, status FROM redirects";

/// `None`: no request can be for this name.
fn domain(row: &Row<'_>) -> rusqlite::Result<Option<Domain>> {
    let Some(name) = host(row, 0)? else {
        return Ok(None);
    };
    Ok(Some(Domain {
        name,
        // Served, and DNS is asked again.
        state: text(row, 1)?.parse().unwrap_or(DomainState::DnsChanged),
        since: integer(row, 2)?.unwrap_or_default(),
        reason: text_or_null(row, 3)?,
        message: text_or_null(row, 4)?,
        added_at: integer(row, 5)?.unwrap_or_default(),
        checked_at: integer(row, 6)?,
        is_primary: integer(row, 7)? == Some(1),
    }))
}

/// A name of a host, which goes into header fields; `None` if it cannot be one.
fn host(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let name = text(row, column)?;
    Ok(name.bytes().all(is_host).then(|| name.into_owned()))
}

fn redirect(row: &Row<'_>) -> rusqlite::Result<Option<Redirect>> {
    let (Some(from), Some(to)) = (host(row, 0)?, host(row, 1)?) else {
        return Ok(None);
    };
    let status = integer(row, 2)?.and_then(|status| u16::try_from(status).ok());
    let status = status
        .filter(|status| REDIRECT_STATUSES.contains(status))
        .unwrap_or(307);
    Ok(Some(Redirect { from, to, status }))
}

/// Reads of the project. Each method fails if the database cannot be read.
impl Reader {
    /// The plan that is paid for.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        let plan = self.first("SELECT plan FROM project", &[], |row| {
            Ok(text(row, 0)?.parse().ok())
        })?;
        Ok(plan.flatten().unwrap_or(Plan::Free))
    }

    /// Every domain, ordered by name.
    pub fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        Ok(self
            .all(&format!("{DOMAIN} ORDER BY name"), domain)?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The domain with this name, in A-labels and lower case.
    pub fn domain(&self, name: &str) -> Result<Option<Domain>, StoreError> {
        Ok(self
            .first(&format!("{DOMAIN} WHERE name = ?1"), params![name], domain)?
            .flatten())
    }

    /// The name of the primary domain.
    pub fn primary(&self) -> Result<Option<String>, StoreError> {
        let primary = "SELECT name FROM domains WHERE is_primary = 1";
        Ok(self.first(primary, &[], |row| host(row, 0))?.flatten())
    }

    /// Every redirect, ordered by its source.
    pub fn redirects(&self) -> Result<Vec<Redirect>, StoreError> {
        let redirects = self.all(&format!("{REDIRECT} ORDER BY source"), redirect)?;
        Ok(redirects.into_iter().flatten().collect())
    }

    /// The redirect from this domain.
    pub fn redirect(&self, from: &str) -> Result<Option<Redirect>, StoreError> {
        Ok(self
            .first(
                &format!("{REDIRECT} WHERE source = ?1"),
                params![from],
                redirect,
            )?
            .flatten())
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
                    deployed_at: integer(row, 1)?.unwrap_or_default(),
                    files: row.get(2)?,
                    bytes: row.get(3)?,
                    is_live: row.get(4)?,
                })
            },
        )
    }

    /// Returns `true` if the site was ever deployed.
    pub fn is_deployed(&self) -> Result<bool, StoreError> {
        self.one("SELECT deploy IS NOT NULL FROM project")
    }

    /// Returns `true` if the live deploy has any static file.
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
                    path: text(row, 1)?.into_owned(),
                    content_type: text(row, 2)?.into_owned(),
                    tag: text(row, 3)?.into_owned(),
                    length: row.get(4).unwrap_or_default(),
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
        let content = self.first(&sql, params![file.row], |row| {
            Ok(row.get(0).unwrap_or_default())
        })?;
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
