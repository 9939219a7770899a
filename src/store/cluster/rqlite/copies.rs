//! Copies the whole database of a cluster to a local file and back, through the snapshot of the cluster.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::connection::{Cluster, REVISION};
use super::schema::{PATIENCE, is_in_use, migrate};
use super::{connect, random};
use crate::store::StoreError;
use crate::store::cluster::{Revision, Whole};
use crate::store::migrations::{self, STEPS};
use petstore_cluster::Client;

use petstore_base::error::{Error, ErrorKind, fail};

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
    let mut cluster = Cluster::open_existing(path)?;
    cluster.begin()?;
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
    let whole = Whole::in_folder(folder.clone(), NAME);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&*whole);
    let mut file = file.map_err(cannot)?;
    cluster.client.download(&mut file, PATIENCE)?;
    file.sync_all().map_err(cannot)?;
    if cluster.has_seen_no_more_than(&strip(&whole)?) {
        return Ok(whole);
    }
    // The copy is of a node that wrongly thinks that it still leads.
    let message = format!(
        "the copy of {} lacks what it has acknowledged; run the command again",
        cluster.client.address
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

/// Makes a file, which is changed for it, the database of a cluster that no service has used yet.
///
/// # Errors
/// If the cluster has been used, does not answer, or refuses the file.
pub fn load(path: &Path, copy: &Path) -> Result<(), Error> {
    let client = connect(path)?;
    refuse_used(&client, path)?;
    let mut connection = open(copy).map_err(StoreError::from)?;
    migrations::migrate(&mut connection, copy, STEPS)?;
    connection
        .execute(FORGET_MARK, [])
        .map_err(StoreError::from)?;
    drop(connection);
    let bytes = fs::read(copy)
        .map_err(|error| Error::io(format!("cannot read {}", copy.display()), error))?;
    // A service may have begun to use it meanwhile.
    refuse_used(&client, path)?;
    client.load(&bytes, PATIENCE).map_err(|failure| {
        Error::from(failure)
            .context("the cluster may have the backup now, or not; run the command again")
    })?;
    // Adds the tables and triggers that only a cluster has.
    migrate(&client, path)
}

fn refuse_used(client: &Client, path: &Path) -> Result<(), Error> {
    if is_in_use(client, path)? {
        let message = format!(
            "{} has a database, which a service may be using: a backup can only be restored into a cluster whose nodes \
             have empty folders",
            client.address
        );
        return fail(ErrorKind::DatabaseNotNew, message);
    }
    Ok(())
}
