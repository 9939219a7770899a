//! Opens a database for a service: the one order in which that is safe.

use std::path::Path;
use std::sync::Arc;

use super::claim::Claim;
use super::watch::Loss;
use super::{Reader, Writer};
use crate::error::Error;

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection that writes.
    pub writer: Writer,
    /// The connections that read.
    pub readers: Vec<Reader>,
    /// What stops all of them once one has lost the database.
    pub loss: Arc<Loss>,
    /// Keeps other services away.
    pub claim: Claim,
}

/// Opens a database for a service with this many readers, and creates the file if there is none.
///
/// # Errors
/// If another service has the database, it is not one of ours, its log is that of another database, or the system
/// refuses.
pub fn open_for_service(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    // The claim first: from here on, no other service opens the database or removes its log.
    let mut claim = Claim::take(path)?;
    // Before SQLite opens the database and applies whatever log it finds.
    claim.check_log(path)?;
    // The writer before the readers: it makes the schema that they expect.
    let mut writer = Writer::open(path)?;
    claim.take_log(path)?;
    let loss = Arc::new(Loss::default());
    writer.share(&loss);
    // What a crash left in the log moves into the file. Before the readers, which would keep the log.
    if let Err(error) = writer.checkpoint() {
        log::debug!("the write-ahead log stays for now: {error}");
    }
    let open = |_| {
        let mut reader = Reader::open(path)?;
        reader.share(&loss);
        Ok(reader)
    };
    let readers = (0..readers).map(open).collect::<Result<_, Error>>()?;
    Ok(OpenStore { writer, readers, loss, claim })
}
