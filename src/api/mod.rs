//! What each operation takes, checks and answers: one file a resource, which owns its rows of the table of
//! operations. Knows the store's reads and writes, and nothing of sockets or SQL.
//!
//! To add a resource, write its file, and name its rows in [`TABLES`].

mod assets;
mod call;
mod health;
mod list_cache;
mod operation;
mod orders;
mod paging;
mod parameter;
mod pets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::http::{ApiError, Assets, Code};
use crate::json::Invalid;
use crate::store::{Reader, StoreError, Trouble, Writer};

pub use assets::FILE;
pub use call::Call;
pub use operation::{Handler, HeaderField, Operation, Staged, Success};

/// The rows of every resource.
pub const TABLES: &[&[Operation]] = &[
    pets::OPERATIONS,
    orders::OPERATIONS,
    health::OPERATIONS,
    assets::OPERATIONS,
    if cfg!(feature = "site") { assets::PAGES } else { &[] },
];

/// Whether a path, or all below it, is that of an operation: nothing else may lie there.
pub fn is_built_in(path: &str) -> bool {
    let first = |path: &'static str| path.split('/').nth(1);
    let mut rows = TABLES.iter().copied().flatten();
    rows.any(|row| path.split('/').nth(1) == first(row.path))
}

/// What a handler that reads works with.
pub struct Reading {
    pub store: Reader,
    /// Lists that need not be made again.
    lists: list_cache::ListCache,
    assets: Arc<Assets>,
}

impl Reading {
    /// What a worker that reads needs.
    pub fn new(store: Reader, assets: Arc<Assets>) -> Self {
        Self { store, lists: list_cache::ListCache::default(), assets }
    }
}

/// What a handler that writes works with.
pub struct Writing {
    pub store: Writer,
    /// When it was last seen whether the store takes writes, and what was seen.
    verdict: Option<(Instant, Result<(), StoreError>)>,
}

/// How long a verdict holds, so that a flood of questions costs the writer nothing.
const VERDICT_HOLDS: Duration = Duration::from_millis(100);

impl Writing {
    /// What the worker that writes needs.
    pub fn new(store: Writer) -> Self {
        Self { store, verdict: None }
    }

    /// A batch failed, so that an earlier yes holds no longer.
    pub fn failed(&mut self, error: StoreError) {
        self.verdict = Some((Instant::now(), Err(error)));
    }

    /// A batch was written, so that an earlier no holds no longer.
    pub fn succeeded(&mut self) {
        self.verdict.take_if(|(_, verdict)| verdict.is_err());
    }

    /// Has a verdict hold for the rest of a test.
    #[cfg(test)]
    pub fn hold(&mut self, verdict: Result<(), StoreError>) {
        self.verdict = Some((Instant::now() + Duration::from_secs(3600), verdict));
    }

    /// Whether the store takes writes, as just seen or seen a moment ago. Only between batches.
    fn takes_writes(&mut self) -> Result<(), StoreError> {
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

/// What a check may ask of the writer: it cannot write anything itself.
pub struct Probe<'w>(&'w mut Writing);

impl<'w> Probe<'w> {
    /// Of a writer that is between two batches.
    pub fn new(writing: &'w mut Writing) -> Self {
        Self(writing)
    }

    /// Whether the store takes writes.
    ///
    /// # Errors
    /// Why it does not.
    pub fn takes_writes(self) -> Result<(), StoreError> {
        self.0.takes_writes()
    }
}

/// The one place where a failure of the store becomes one of the interface.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(trouble, detail) => {
                let what_next =
                    if trouble.passes() { "Try again in a moment." } else { "An operator must look." };
                let message = format!("The database {}; nothing was changed. {what_next}", trouble.as_str());
                let is_fatal = trouble == Trouble::Damaged;
                ApiError::with_message(Code::StorageUnavailable, message).detail(detail).fatal(is_fatal)
            }
            StoreError::Internal(detail) => ApiError::new(Code::Internal).detail(detail),
        }
    }
}

/// The one place where a body that cannot be read becomes a failure of the interface.
impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let (code, message) = match invalid {
            Invalid::Json(message) => (Code::InvalidJson, message),
            Invalid::Missing(message) => (Code::MissingMember, message),
            Invalid::Member(message) => (Code::InvalidMember, message),
            Invalid::Duplicate(message) => (Code::DuplicateMember, message),
        };
        ApiError::with_message(code, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{Folder, refuse_writes};

    fn no() -> Result<(), StoreError> {
        Err(StoreError::Unavailable(Trouble::Locked, "as if just seen".to_owned()))
    }

    #[test]
    fn verdict_holds_for_a_moment() {
        let folder = Folder::new();
        let mut writing = Writing::new(Writer::open(&folder.database()).unwrap());
        writing.hold(no());
        assert_eq!(writing.takes_writes(), no());
        writing.verdict = Instant::now().checked_sub(VERDICT_HOLDS).map(|at| (at, no()));
        assert_eq!(writing.takes_writes(), Ok(()), "asked again");
        refuse_writes(&writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
    }

    #[test]
    fn batch_overrules_an_earlier_verdict_to_the_contrary() {
        let folder = Folder::new();
        let mut writing = Writing::new(Writer::open(&folder.database()).unwrap());
        writing.hold(Ok(()));
        writing.succeeded();
        assert!(writing.verdict.is_some(), "no probe is needed");
        writing.failed(StoreError::Unavailable(Trouble::Full, "full".to_owned()));
        assert!(matches!(writing.verdict, Some((_, Err(StoreError::Unavailable(Trouble::Full, _))))));
        writing.succeeded();
        assert!(writing.verdict.is_none(), "only a probe can tell");
    }
}
