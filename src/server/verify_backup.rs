//! Verifies a backup: restores it into a private folder, and starts a service on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{PrivateFolder, Server};
use crate::config::Config;
use crate::ops::maintenance::{RestoredKeys, Stop, restore};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_gate::{LaneListener, Listen};

/// The most connections. One of them is for the request.
const CONNECTIONS: usize = 4;
/// The time limit of the request: more than any response takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Verifies a backup: restores it into a private folder within the one for temporary files (`TMPDIR`), starts a service
/// on it, and sends it a request. Returns the number of pets. The restore checks every row. The service listens on a
/// private Unix socket. Neither the backup nor any other database is changed, and the folder is removed at the end.
///
/// ```no_run
/// let pets = petstore::drill("copy.db".as_ref(), &|| false)?;
/// println!("a service runs on it, with {pets} pets");
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::BackupUnsound`] if the backup cannot be restored, or the service on it does not respond, and the errors
/// of [`restore`] and of [`Server::start`].
pub fn drill(file: &Path, stop: Stop) -> Result<u64, Error> {
    let folder = PrivateFolder::new(file)?;
    let database = folder.path.join("pets.db");
    let pets = restore(file, &database, RestoredKeys::FromBackup, stop)?.pets;
    let (listener, _) = LaneListener::bind(&folder.path)?;
    let listen = Listen::Socket(Arc::new(listener.into()));
    let server = Server::start(Config {
        listen,
        database,
        max_connections: CONNECTIONS,
        ..Config::default()
    })?;
    if !server.health_check().is_answered(PATIENCE) {
        return fail(
            ErrorKind::BackupUnsound,
            format!("a service on {} does not answer", file.display()),
        );
    }
    Ok(pets)
}
