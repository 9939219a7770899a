//! What each operation takes, checks and returns: one file per resource, which owns its rows of the table of
//! operations. Knows the store's reads and writes, and nothing of sockets or SQL.
//!
//! To add a resource, write its file, and name its rows in [`ROUTER`] and its schemas in [`schemas`].

mod entity_tag;
mod health;
mod idempotency;
mod list_cache;
mod orders;
mod paging;
mod pets;
mod site_files;
mod well_known;

pub use well_known::{API_CATALOG, FAVICON, ROBOTS, SITEMAP};

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::endpoint::{self, Failure, Router};
use crate::base::config::Config;
use crate::base::http::{LazyAssets, Response};
use crate::store::{Committed, Damage, Reader, StoreError, Writer};
use list_cache::ListCache;

pub use entity_tag::ETAG;
pub use paging::{PAGE_ROWS, is_long_page};
pub use pets::announced_pet;
pub use site_files::{ACCEPT, FILE, LATEST, NOT_FOUND, REFERENCE_AMONG_FILES, is_deployed};

/// The rows of every resource. It finds the row of a request.
pub static ROUTER: Router<Handler> = Router(&[
    pets::OPERATIONS,
    orders::OPERATIONS,
    health::OPERATIONS,
    site_files::OPERATIONS,
    well_known::OPERATIONS,
    if cfg!(feature = "site") { well_known::PAGES } else { &[] },
    if cfg!(feature = "site") { site_files::PAGES } else { &[] },
]);

/// The schemas of every resource for the interface description: their names and their JSON Schemas.
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    [pets::schemas()].concat()
}

/// A row of the table.
pub type Operation = endpoint::Operation<Handler>;

/// A request to one of the operations, authenticated if its path is under `/v1`.
pub type Call<'r> = endpoint::Call<'r, Handler>;

/// A response that waits for the commit: a closure that makes it once the batch is on disk.
pub type Staged<'r> = Box<dyn FnOnce(&Committed) -> Result<Response, Failure> + 'r>;

/// The part of a health check that asks the writer.
pub type Check = fn(&mut WriteContext) -> Result<Response, Failure>;

/// The handler of an operation. Its variant decides the method, the lane and the key scope, so that they
/// cannot disagree.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// GET and HEAD: reads, in a read lane.
    Get(for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>),
    /// POST: writes, in the write lane. A read-only key may not call it. It may run again, after all that it wrote was
    /// undone, so it must have no effect outside the store.
    Post(for<'r> fn(&mut WriteContext, &Call<'r>) -> Result<Staged<'r>, Failure>),
    /// GET and HEAD: asks a reader and, if all is well, the writer between two batches. It must write nothing. A service
    /// that only reads answers with the JSON of `read_only` instead of asking the writer.
    Check { read: fn(&mut ReadContext) -> Result<(), Failure>, write: Check, read_only: &'static str },
}

impl endpoint::Handler for Handler {
    fn method(&self) -> &'static str {
        match self {
            Handler::Get(_) | Handler::Check { .. } => "GET",
            Handler::Post(_) => "POST",
        }
    }
}

/// Whether the first segment of a path belongs to an operation. A deploy may not have files there, except at the
/// well-known places.
pub fn is_built_in(path: &str) -> bool {
    let well_known = [well_known::OPERATIONS, well_known::PAGES];
    let is_well_known =
        |row: &&Operation| well_known.iter().any(|rows| rows.iter().any(|own| own.path == row.path));
    ROUTER
        .operations()
        .filter(|row| !is_well_known(row))
        .any(|row| path.split('/').nth(1) == row.path.split('/').nth(1))
}

/// The context of a handler that reads.
pub struct ReadContext {
    pub store: Reader,
    /// What the service has met of it.
    pub damage: Damage,
    /// Finished lists, for requests that ask for them again.
    lists: ListCache,
    assets: Arc<LazyAssets>,
    /// Every setting.
    pub config: Arc<Config>,
}

impl ReadContext {
    /// Creates the context of a reading worker.
    pub fn new(store: Reader, damage: Damage, assets: Arc<LazyAssets>, config: Arc<Config>) -> Self {
        Self { store, damage, lists: ListCache::default(), assets, config }
    }
}

/// The context of a handler that writes.
pub struct WriteContext {
    pub store: Writer,
    /// When something was last written or a write tried out, and whether the store took it.
    last_write: Option<(Instant, Result<(), StoreError>)>,
}

/// For so long the last write tells whether the store takes the next one, so that a flood of health checks costs the
/// writer nothing.
const LAST_WRITE_TELLS: Duration = Duration::from_millis(100);

impl WriteContext {
    /// Creates the context of the writing worker.
    pub fn new(store: Writer) -> Self {
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
    use crate::app::endpoint::flaw;
    use crate::app::pipeline::is_protected;
    use crate::base::http::Target;

    #[test]
    fn table_is_sound() {
        assert_eq!(flaw(&ROUTER.operations().collect::<Vec<_>>()), None);
    }

    #[test]
    fn nothing_is_written_without_a_key() {
        for row in ROUTER.operations().filter(|row| row.writes()) {
            assert!(is_protected(&Target::parse(row.path)), "{}", row.path);
        }
    }

    #[test]
    fn described_operations_have_a_tag() {
        for row in ROUTER.operations() {
            assert_eq!(row.tag.is_some(), row.path.starts_with("/v1/"), "{}", row.path);
        }
    }

    #[test]
    fn operations_state_how_many_rows_they_read() {
        for row in ROUTER.operations().chain([&FILE]) {
            assert!(row.rows.is_some(), "{} may read any number of rows", row.id);
        }
    }

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
        refuse_writes(&writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
        writing.written(no());
        assert_eq!(writing.takes_writes(), no());
    }
}
