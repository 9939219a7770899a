//! The handler of an operation, and the contexts in which it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::list_cache::ListCache;
use super::{Call, Failure};
use crate::app::endpoint::ApiError;
use crate::app::settings::ApiSettings;
use crate::store::{BUSY_TIMEOUT, BatchWriter, Cause, Counts, Damage, Reader, StoreError, Writer};
use petstore_base::http::{LazyAssets, Response};

/// A response that waits for the commit. An error waits too: an earlier request of the batch may be its cause, such as
/// the deletion of a pet that is then not found.
pub type Staged = Result<Response, ApiError>;

/// The writer's part of a health check.
pub type WriterCheck = fn(&mut WriteContext) -> Result<Response, Failure>;

/// The handler of an operation. Its variant decides the lane and the key scope, so that they cannot disagree.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// GET and HEAD: reads, in a read lane.
    Get(for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>),
    /// Any other method, such as POST: writes, in the write lane. A read-only key may not call it. If the batch is
    /// undone, it runs again, so it must have no effect outside the store.
    Write(
        &'static str,
        for<'r> fn(&mut BatchWriter, &Call<'r>) -> Result<Staged, Failure>,
    ),
    /// GET and HEAD: a health check. `read` runs in a read lane and, if it succeeds, `write` runs in the write lane
    /// after a commit. Neither may change data. A read-only service sends `read_only_body` instead of calling `write`.
    Health {
        read: fn(&mut ReadContext) -> Result<(), Failure>,
        write: WriterCheck,
        read_only_body: &'static str,
    },
}

impl Handler {
    /// The method; GET stands for HEAD as well.
    pub fn method(&self) -> &'static str {
        match self {
            Handler::Get(_) | Handler::Health { .. } => "GET",
            Handler::Write(method, _) => method,
        }
    }
}

/// The context of a handler that reads.
pub struct ReadContext {
    pub store: Reader,
    /// The damage to the database that the service has found.
    pub damage: Damage,
    /// Finished lists, for repeated requests.
    pub lists: ListCache,
    /// The last count of the pets.
    pub counts: Counts,
    pub assets: Arc<LazyAssets>,
    pub settings: Arc<ApiSettings>,
}

impl ReadContext {
    /// Creates the context of a reading worker.
    pub fn new(
        store: Reader,
        damage: Damage,
        assets: Arc<LazyAssets>,
        settings: Arc<ApiSettings>,
    ) -> Self {
        Self {
            store,
            damage,
            lists: ListCache::default(),
            counts: Counts::default(),
            assets,
            settings,
        }
    }
}

/// The context of the writing worker.
pub struct WriteContext {
    pub store: Writer,
    /// The time and the result of the last write or probe.
    last_write: Option<(Instant, Result<(), StoreError>)>,
}

/// How long the result of the last write is reused, so that a flood of health checks does not occupy the writer.
const LAST_WRITE_COUNTS: Duration = Duration::from_millis(100);

impl WriteContext {
    /// Creates the context of the writing worker.
    pub fn new(store: Writer) -> Self {
        Self {
            store,
            last_write: None,
        }
    }

    /// Notes the result of the last write. One that a lock kept from writing shows nothing of the disk: then an earlier
    /// failure still counts.
    pub fn written(&mut self, mut written: Result<(), StoreError>) {
        // Nor does a rule of another program, such as a deferred reference.
        if matches!(written, Err(StoreError::Rejected(_))) {
            return;
        }
        if is_locked(&written)
            && let Some((_, Err(known))) = &self.last_write
        {
            written = Err(known.clone());
        }
        self.last_write = Some((Instant::now(), written));
    }

    /// Checks that the store can write. Uses the result of the last write if it is recent, and otherwise probes the
    /// store. Call it between batches only.
    ///
    /// # Errors
    /// The [`StoreError`] of the last write or probe.
    pub fn takes_writes(&mut self) -> Result<(), StoreError> {
        match &self.last_write {
            Some((at, written)) if at.elapsed() < LAST_WRITE_COUNTS => written.clone(),
            _ => {
                // A lock of another process is no failure, and need not be waited for.
                self.store.set_busy_timeout(Duration::ZERO);
                let written = self.store.probe();
                self.store.set_busy_timeout(BUSY_TIMEOUT);
                self.written(written);
                self.last_write
                    .as_ref()
                    .map_or(Ok(()), |(_, written)| written.clone())
            }
        }
    }

    /// Fixes the result of the last write for the rest of a test.
    #[cfg(test)]
    pub fn hold(&mut self, written: Result<(), StoreError>) {
        self.last_write = Some((Instant::now() + Duration::from_secs(3600), written));
    }
}

fn is_locked(written: &Result<(), StoreError>) -> bool {
    matches!(written, Err(StoreError::Unavailable(Cause::Locked, _)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{Folder, refuse_writes};

    #[test]
    fn last_write_counts_for_a_moment() {
        let no = || {
            Err(StoreError::Unavailable(
                Cause::Locked,
                "as if just seen".to_owned(),
            ))
        };
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        writing.hold(no());
        assert_eq!(writing.takes_writes(), no());
        writing.last_write = Instant::now()
            .checked_sub(LAST_WRITE_COUNTS)
            .map(|at| (at, no()));
        assert_eq!(writing.takes_writes(), Ok(()), "asked again");
        refuse_writes(&writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
        writing.written(no());
        assert_eq!(writing.takes_writes(), no());
    }

    #[test]
    fn lock_does_not_hide_a_disk_that_failed() {
        let failed = |cause| Err(StoreError::Unavailable(cause, "as if just seen".to_owned()));
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        let mut other = Writer::open(&folder.database()).unwrap();
        other.open_transaction().unwrap();
        writing.last_write = Instant::now()
            .checked_sub(LAST_WRITE_COUNTS)
            .map(|at| (at, failed(Cause::Full)));
        assert_eq!(
            writing.takes_writes(),
            failed(Cause::Full),
            "nobody could ask"
        );
        other.undo();
        writing.last_write = None;
        assert_eq!(writing.takes_writes(), Ok(()));
        writing.written(failed(Cause::Locked));
        assert!(is_locked(&writing.takes_writes()), "a write worked before");
    }
}
