//! What handlers work with: a handler that reads has a snapshot of the store, one that writes a transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::list_cache::ListCache;
use crate::config::Config;
use crate::http::Assets;
use crate::store::{Reader, StoreError, Writer};

/// The context of a handler that reads.
pub struct ReadContext {
    pub store: Box<Reader>,
    /// Finished lists, for requests that ask for them again.
    pub(super) lists: ListCache,
    pub(super) assets: Arc<Assets>,
    /// Every setting.
    pub config: Arc<Config>,
}

impl ReadContext {
    /// Creates the context of a reading worker.
    pub fn new(store: Box<Reader>, assets: Arc<Assets>, config: Arc<Config>) -> Self {
        Self { store, lists: ListCache::default(), assets, config }
    }
}

/// The context of a handler that writes.
pub struct WriteContext {
    pub store: Box<Writer>,
    /// When something was last written or a write tried out, and whether the store took it.
    last_write: Option<(Instant, Result<(), StoreError>)>,
}

/// For so long the last write tells whether the store takes the next one, so that a flood of health checks costs the
/// writer nothing.
const LAST_WRITE_TELLS: Duration = Duration::from_millis(100);

impl WriteContext {
    /// Creates the context of the writing worker.
    pub fn new(store: Box<Writer>) -> Self {
        Self { store, last_write: None }
    }

    /// Notes whether the store took the last write.
    pub fn written(&mut self, written: Result<(), StoreError>) {
        self.last_write = Some((Instant::now(), written));
    }

    /// Whether the store takes writes, as a batch or a trial showed just now. Call it between batches only.
    ///
    /// # Errors
    /// The [`StoreError`] with which it refuses them.
    pub fn takes_writes(&mut self) -> Result<(), StoreError> {
        match &self.last_write {
            Some((at, written)) if at.elapsed() < LAST_WRITE_TELLS => written.clone(),
            _ => {
                let written = self.store.probe();
                self.written(written.clone());
                written
            }
        }
    }

    /// Keeps the result of the last write for the rest of a test.
    #[cfg(test)]
    pub fn hold(&mut self, written: Result<(), StoreError>) {
        self.last_write = Some((Instant::now() + Duration::from_secs(3600), written));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cause;
    use crate::store::tests::{Folder, refuse_writes};

    #[test]
    fn last_write_tells_for_a_moment() {
        let no = || Err(StoreError::Unavailable(Cause::Locked, "as if just seen".to_owned()));
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        writing.hold(no());
        assert_eq!(writing.takes_writes(), no());
        writing.last_write = Instant::now().checked_sub(LAST_WRITE_TELLS).map(|at| (at, no()));
        assert_eq!(writing.takes_writes(), Ok(()), "asked again");
        refuse_writes(&*writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
        writing.written(no());
        assert_eq!(writing.takes_writes(), no());
    }
}
