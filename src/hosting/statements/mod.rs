//! The statements that read the project: its plan, its deploys, its domains and their redirects. `change.rs` has
//! those that write.

mod change;

use crate::database::{Reads, Row, Value};
use crate::model::{Deploy, Domain, DomainState, Plan, REDIRECT_STATUSES, Redirect};
use petstore_base::error::Error;

pub use change::ProjectWrites;

const DOMAIN: &str =
    "SELECT name, state, since, reason, message, added_at, checked_at, is_primary FROM domains";
const REDIRECT: &str = "SELECT source, target, status FROM redirects";

/// `None`: no request can be for this name.
fn domain(row: &dyn Row) -> Option<Domain> {
    Some(Domain {
        name: host(row, 0)?,
        // Served, and DNS is asked again.
        state: word(row, 1).unwrap_or(DomainState::DnsChanged),
        since: row.integer(2).unwrap_or_default(),
        reason: row.text(3).map(String::from),
        message: row.text(4).map(String::from),
        added_at: row.integer(5).unwrap_or_default(),
        checked_at: row.integer(6),
        is_primary: row.integer(7) == Some(1),
    })
}

fn word<T: std::str::FromStr>(row: &dyn Row, column: usize) -> Option<T> {
    row.text(column)?.parse().ok()
}

/// A name of a host, which goes into header fields; `None` if it cannot be one.
fn host(row: &dyn Row, column: usize) -> Option<String> {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let name = row.text(column)?;
    name.bytes().all(is_host).then(|| name.into_owned())
}

fn redirect(row: &dyn Row) -> Option<Redirect> {
    let status = row.integer(2).and_then(|status| u16::try_from(status).ok());
    Some(Redirect {
        from: host(row, 0)?,
        to: host(row, 1)?,
        status: status
            .filter(|status| REDIRECT_STATUSES.contains(status))
            .unwrap_or(307),
    })
}

/// Reads of the project. Each method fails if the database cannot be read.
pub trait ProjectReads: Reads {
    /// What `read` makes of each row, without what it makes nothing of.
    fn all<T>(
        &self,
        sql: &str,
        values: &[Value],
        read: impl Fn(&dyn Row) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        self.visit(sql, values, &mut |row| all.extend(read(row)))?;
        Ok(all)
    }

    /// What `read` makes of the first row.
    fn first<T>(
        &self,
        sql: &str,
        values: &[Value],
        read: impl Fn(&dyn Row) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        Ok(self.all(sql, values, read)?.into_iter().next())
    }

    /// The plan that is paid for.
    fn plan(&self) -> Result<Plan, Error> {
        let plan = self.first("SELECT plan FROM project", &[], |row| word(row, 0))?;
        Ok(plan.unwrap_or(Plan::Free))
    }

    /// Every domain, ordered by name.
    fn domains(&self) -> Result<Vec<Domain>, Error> {
        self.all(&format!("{DOMAIN} ORDER BY name"), &[], domain)
    }

    /// The domain with this name, in A-labels and lower case.
    fn domain(&self, name: &str) -> Result<Option<Domain>, Error> {
        self.first(&format!("{DOMAIN} WHERE name = ?1"), &[name.into()], domain)
    }

    /// The name of the primary domain.
    fn primary(&self) -> Result<Option<String>, Error> {
        let primary = "SELECT name FROM domains WHERE is_primary = 1";
        self.first(primary, &[], |row| host(row, 0))
    }

    /// Every redirect, ordered by its source.
    fn redirects(&self) -> Result<Vec<Redirect>, Error> {
        self.all(&format!("{REDIRECT} ORDER BY source"), &[], redirect)
    }

    /// The redirect from this domain.
    fn redirect(&self, from: &str) -> Result<Option<Redirect>, Error> {
        self.first(
            &format!("{REDIRECT} WHERE source = ?1"),
            &[from.into()],
            redirect,
        )
    }

    /// The deploys that are kept, the newest first.
    fn deploys(&self) -> Result<Vec<Deploy>, Error> {
        self.all(
            "SELECT d.id, d.deployed_at, count(f.path), ifnull(sum(length(f.content)), 0),
                    d.id IS (SELECT deploy FROM project)
             FROM deploys AS d LEFT JOIN deploy_files AS f ON f.deploy = d.id
             WHERE d.deployed_at IS NOT NULL GROUP BY d.id ORDER BY d.id DESC",
            &[],
            |row| {
                Some(Deploy {
                    id: row.integer(0)?,
                    deployed_at: row.integer(1).unwrap_or_default(),
                    files: row.integer(2)?,
                    bytes: row.integer(3)?,
                    is_live: row.integer(4) == Some(1),
                })
            },
        )
    }

    /// Returns `true` if the site was ever deployed.
    fn is_deployed(&self) -> Result<bool, Error> {
        self.is_true("SELECT deploy IS NOT NULL FROM project")
    }

    /// Returns `true` if the live deploy has any static file.
    fn has_files(&self) -> Result<bool, Error> {
        self.is_true("SELECT EXISTS (SELECT 1 FROM deploy_files WHERE deploy = (SELECT deploy FROM project))")
    }

    /// Returns whether the only column of the only row is 1.
    fn is_true(&self, sql: &str) -> Result<bool, Error> {
        Ok(self.first(sql, &[], |row| row.integer(0))? == Some(1))
    }

    /// The static file of the live deploy at `path`, or else at `other`, without its content.
    fn file(&self, path: &str, other: &str) -> Result<Option<FileInfo>, Error> {
        let length = |number| u32::try_from(number).ok();
        self.first(
            "SELECT rowid, path, content_type, tag, length(content), length(gzip) FROM deploy_files
             WHERE deploy = (SELECT deploy FROM project) AND path IN (?1, ?2) ORDER BY path <> ?1 LIMIT 1",
            &[path.into(), other.into()],
            |row| {
                Some(FileInfo {
                    row: row.integer(0)?,
                    path: row.text(1)?.into_owned(),
                    content_type: row.text(2)?.into_owned(),
                    tag: row.text(3)?.into_owned(),
                    length: row.integer(4).and_then(length).unwrap_or_default(),
                    gzip_length: row.integer(5).and_then(length),
                })
            },
        )
    }

    /// The content of a file, in gzip or as it is; `None` if the file was removed since it was found.
    fn content(&self, file: &FileInfo, gzip: bool) -> Result<Option<Vec<u8>>, Error> {
        let column = if gzip { "gzip" } else { "content" };
        let sql = format!("SELECT {column} FROM deploy_files WHERE rowid = ?1");
        self.first(&sql, &[file.row.into()], |row| Some(row.bytes(0).to_vec()))
    }
}

impl<R: Reads> ProjectReads for R {}

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
