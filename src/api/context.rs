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
    /// Whether the store accepted writes when it was last probed, and when that was.
    verdict: Option<(Instant, Result<(), StoreError>)>,
}

/// How long a verdict holds, so that a flood of health checks costs the writer nothing.
const VERDICT_HOLDS: Duration = Duration::from_millis(100);

impl WriteContext {
    /// Creates the context of the writing worker.
    pub fn new(store: Box<Writer>) -> Self {
        Self { store, verdict: None }
    }

    /// Notes that a batch failed, which overrules an earlier success.
    pub fn failed(&mut self, error: StoreError) {
        self.verdict = Some((Instant::now(), Err(error)));
    }

    /// Notes that a batch was written, which overrules an earlier failure.
    pub fn succeeded(&mut self) {
        self.verdict.take_if(|(_, verdict)| verdict.is_err());
    }

    /// Keeps a verdict for the rest of a test.
    #[cfg(test)]
    pub fn hold(&mut self, verdict: Result<(), StoreError>) {
        self.verdict = Some((Instant::now() + Duration::from_secs(3600), verdict));
    }

    /// Whether the store accepts writes, probed now or a moment ago. Call it between batches only.
    ///
    /// # Errors
    /// The [`StoreError`] with which it refuses them.
    pub fn takes_writes(&mut self) -> Result<(), StoreError> {
        match &self.verdict {
            Some((at, verdict)) if at.elapsed() < VERDICT_HOLDS => verdict.clone(),
            _ => {
                let verdict = self.store.probe();
                self.verdict = Some((Instant::now(), verdict.clone()));
                verdict
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cause;
    use crate::store::tests::{Folder, refuse_writes};

    fn no() -> Result<(), StoreError> {
        Err(StoreError::Unavailable(Cause::Locked, "as if just seen".to_owned()))
    }

    #[test]
    fn verdict_holds_for_a_moment() {
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        writing.hold(no());
        assert_eq!(writing.takes_writes(), no());
        writing.verdict = Instant::now().checked_sub(VERDICT_HOLDS).map(|at| (at, no()));
        assert_eq!(writing.takes_writes(), Ok(()), "asked again");
        refuse_writes(&*writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
    }

    #[test]
    fn batch_overrules_an_earlier_verdict_to_the_contrary() {
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        writing.hold(Ok(()));
        writing.succeeded();
        assert!(writing.verdict.is_some(), "no probe is needed");
        writing.failed(StoreError::Unavailable(Cause::Full, "full".to_owned()));
        assert!(matches!(writing.verdict, Some((_, Err(StoreError::Unavailable(Cause::Full, _))))));
        writing.succeeded();
        assert!(writing.verdict.is_none(), "only a probe can tell");
    }
}
