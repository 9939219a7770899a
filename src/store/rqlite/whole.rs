//! Copies the whole database of a cluster to a local file and back, through the snapshot of the cluster.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};

use super::client::{self, ClusterValue, Statement};
use super::request::CLOSER;
use super::revision::{REVISION, Revision};
use super::schema::{PATIENCE, is_in_use, migrate, require_current};
use super::session::Session;
use super::{connect, random};
use crate::base::clock::unix_time;
use crate::base::error::{Error, ErrorKind, fail};
use crate::store::StoreError;
use crate::store::sqlite::schema::{self, STEPS};
use crate::store::whole::Whole;

/// The most seconds that a cluster stays closed.
const CLOSED_FOR: i64 = 1800;
/// Loading begins only if at least this many seconds are left; a node may take 600.
const NEEDED: i64 = 660;
/// Takes over from another restore, which may have been killed. If it still runs, it notices this before it loads.
const CLOSE: &str = "INSERT INTO cluster_writers (writer, batch, first, is_current) VALUES (?1, ?2, ?3, 1) \
    ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, first = excluded.first";
const CLOSED_BY: &str = "SELECT first FROM cluster_writers WHERE writer = ?1";
const OPEN: &str = "DELETE FROM cluster_writers WHERE writer = ?1 AND first = ?2";
/// The database gets another mark, so that instances notice the restore.
const FORGET_MARK: &str = "DELETE FROM sqlite_sequence WHERE name = 'petstore log'";
/// The name of the copy.
const NAME: &str = "petstore.db";
const DROPS: &str = "SELECT 'DROP ' || type || ' ' || name FROM sqlite_schema \
    WHERE name LIKE 'cluster\\_%' ESCAPE '\\' AND type <> 'index' ORDER BY type DESC";

/// Copies the database of a cluster to a private folder among the temporary files. The copy has everything that was
/// acknowledged before, and is a database for a single machine.
///
/// # Errors
/// If the cluster does not answer, has no database of this version, or the copy cannot be written.
pub fn fetch(path: &Path) -> Result<Whole, Error> {
    let client = connect(path)?;
    require_current(&client, path)?;
    let session = Session::new(std::sync::Arc::clone(&client))?;
    session.begin()?;
    let folder = std::env::temp_dir().join(format!("petstore-copy-{:016x}", random()?));
    let cannot = |error| {
        Error::io(
            format!("cannot write to {} (TMPDIR)", folder.display()),
            error,
        )
    };
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(cannot)?;
    // Deleted on drop from here on.
    let whole = Whole {
        path: folder.join(NAME),
        folder: Some(folder.clone()),
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&*whole);
    let mut file = file.map_err(cannot)?;
    client.download(&mut file, PATIENCE)?;
    file.sync_all().map_err(cannot)?;
    if session.has_seen_no_more_than(&strip(&whole)?) {
        return Ok(whole);
    }
    // The copy is of a node that wrongly thinks that it still leads.
    let message = format!(
        "the copy of {} lacks what it has acknowledged; run the command again",
        client.address
    );
    fail(ErrorKind::DatabaseUnreachable, message)
}

/// Opens a copy to change it.
fn open(copy: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // An interrupted copy is thrown away.
    connection.pragma_update(None, "journal_mode", "MEMORY")?;
    Ok(connection)
}

/// Turns a copy into a database for a single machine: removes the tables and triggers that only a cluster has. Returns
/// the revision of the copy.
fn strip(copy: &Path) -> Result<Revision, StoreError> {
    let connection = open(copy)?;
    let revision = connection.query_row(REVISION, [], |row| {
        Ok(Revision {
            changes: row.get(0)?,
            seq: row.get(1)?,
            mark: row.get(2)?,
        })
    })?;
    let mut drops = connection.prepare(DROPS)?;
    let drops = drops
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    drops
        .iter()
        .try_for_each(|drop| connection.execute_batch(drop))?;
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    Ok(revision)
}

/// A cluster that accepts no writes until this is dropped or [`CLOSED_FOR`] is over. So a restore loses no acknowledged
/// write.
pub struct ClosedCluster {
    path: PathBuf,
    /// A random number that identifies this restore; `None` if there was nothing to close.
    number: Option<i64>,
    /// In Unix time.
    until: i64,
}

/// Keeps all instances from writing. A database that no service has used yet stays as it is.
///
/// # Errors
/// If the cluster does not answer, or is of an earlier version.
pub fn close(path: &Path) -> Result<ClosedCluster, Error> {
    let client = connect(path)?;
    let number = if is_in_use(&client, path)? {
        Some(random()?.cast_signed())
    } else {
        None
    };
    let closed = ClosedCluster {
        path: path.to_owned(),
        number,
        until: unix_time() + CLOSED_FOR,
    };
    if number.is_some() {
        client.write(
            &[Statement::new(
                CLOSE,
                params![CLOSER, closed.until, number],
            )?],
            PATIENCE,
        )?;
    }
    Ok(closed)
}

impl ClosedCluster {
    /// Replaces the database with a copy of a file, which is a database of petstore. The copy is first migrated.
    ///
    /// # Errors
    /// If the cluster does not accept the copy or was closed too long ago, or if another restore or a service has begun
    /// to use it meanwhile.
    pub fn load(self, copy: &Path) -> Result<(), Error> {
        let convert = || -> Result<(), Error> {
            let mut connection = open(copy).map_err(StoreError::from)?;
            schema::migrate(&mut connection, copy, STEPS)?;
            connection
                .execute(FORGET_MARK, [])
                .map_err(StoreError::from)?;
            Ok(())
        };
        convert().map_err(|error| error.followed_by("nothing was changed"))?;
        if self.until - unix_time() < NEEDED {
            return fail(
                ErrorKind::Conflict,
                "copying the old database took too long; nothing was changed",
            );
        }
        let client = connect(&self.path)?;
        if self.number.is_some() {
            let rows = client.read(
                &[Statement::new(CLOSED_BY, params![CLOSER])?],
                client.fresh,
                PATIENCE,
            )?;
            if rows
                .iter()
                .flatten()
                .flatten()
                .find_map(ClusterValue::integer)
                != self.number
            {
                let message = "another restore has begun or ended meanwhile; nothing was changed";
                return fail(ErrorKind::Conflict, message);
            }
        } else if is_in_use(&client, &self.path)? {
            return fail(
                ErrorKind::Conflict,
                "a service has begun to use the cluster; nothing was changed",
            );
        }
        let bytes = fs::read(copy)
            .map_err(|error| Error::io(format!("cannot read {}", copy.display()), error))?;
        client
            .load(&bytes, PATIENCE)
            .map_err(|failure: client::ClusterFailure| {
                Error::from(failure)
                    .context("the cluster may have either database now; run the command again")
            })?;
        // Adds the tables and triggers that only a cluster has.
        migrate(&client, &self.path)
    }
}

#[cfg(test)]
impl ClosedCluster {
    /// Moves the time of closing back by this many seconds.
    pub fn begun_earlier(mut self, seconds: i64) -> Self {
        self.until -= seconds;
        self
    }
}

impl Drop for ClosedCluster {
    fn drop(&mut self) {
        let open = self
            .number
            .map(|number| Statement::new(OPEN, params![CLOSER, number]));
        if let (Some(Ok(open)), Ok(client)) = (open, connect(&self.path)) {
            let _ = client.write(&[open], PATIENCE);
        }
    }
}
