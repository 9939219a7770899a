//! The operations: one file per resource, with its rows of the table of operations and its handlers. Knows the
//! store's reads and writes, and nothing of sockets or SQL.
//!
//! To add a resource, write its file, and name its rows in [`tables`] and its schemas in [`schemas`].

mod entity_tag;
mod health;
mod idempotency;
mod list_cache;
mod orders;
mod paging;
mod pets;
mod site_files;
mod store_inventory;
mod well_known;

pub use well_known::{API_CATALOG, FAVICON, ROBOTS, SITEMAP};

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::endpoint::{self, Failure, Router};
use crate::base::config::Config;
use crate::base::http::{LazyAssets, Response};
use crate::store::{BatchWriter, Committed, Damage, Reader, StoreError, Tally, Writer};
use list_cache::ListCache;

pub use entity_tag::ETAG;
pub use paging::{MAX_PAGE_ROWS, is_long_page};
pub use pets::announced_pet;
pub use site_files::{ACCEPT, FILE, LATEST, NOT_FOUND, among_files, is_deployed};

/// The rows of every resource. `is_experimental`: also those that only `--experimental` serves.
const fn tables(is_experimental: bool) -> [&'static [Operation]; 9] {
    [
        pets::OPERATIONS,
        if is_experimental { pets::EXPERIMENTAL } else { &[] },
        orders::OPERATIONS,
        if is_experimental { store_inventory::EXPERIMENTAL } else { &[] },
        health::OPERATIONS,
        site_files::OPERATIONS,
        well_known::OPERATIONS,
        if cfg!(feature = "site") { well_known::PAGES } else { &[] },
        if cfg!(feature = "site") { site_files::PAGES } else { &[] },
    ]
}

/// The router of a service with or without the experimental operations.
pub fn router(is_experimental: bool) -> &'static Router<Handler> {
    static CONTRACT: Router<Handler> = Router(&tables(false));
    static EXPERIMENTAL: Router<Handler> = Router(&tables(true));
    if is_experimental { &EXPERIMENTAL } else { &CONTRACT }
}

/// The schemas of every resource for the interface description: their names and their JSON Schemas. `is_experimental`:
/// also those of the experimental operations.
pub fn schemas(is_experimental: bool) -> Vec<(&'static str, crate::base::json::Json)> {
    let inventory = if is_experimental { store_inventory::schemas() } else { Vec::new() };
    [pets::schemas(is_experimental), inventory].concat()
}

/// A row of the table.
pub type Operation = endpoint::Endpoint<Handler>;

/// A request to one of the operations, authenticated if its path is under `/v1`.
pub type Call<'r> = endpoint::Routed<'r, Handler>;

/// A response that waits for the commit: a closure that makes it once the batch is on disk.
pub type Staged<'r> = Box<dyn FnOnce(&Committed) -> Result<Response, Failure> + 'r>;

/// The writer's part of a health check.
pub type WriterCheck = fn(&mut WriteContext) -> Result<Response, Failure>;

/// The handler of an operation. Its variant decides the lane and the key scope, so that they cannot disagree.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// GET and HEAD: reads, in a read lane.
    Get(for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>),
    /// Any other method, such as POST: writes, in the write lane. A read-only key may not call it. If the batch is
    /// undone, it runs again, so it must have no effect outside the store.
    Write(&'static str, for<'r> fn(&mut BatchWriter, &Call<'r>) -> Result<Staged<'r>, Failure>),
    /// GET and HEAD: a health check. `read` runs in a read lane and, if it succeeds, `write` runs in the write lane
    /// after a commit. Neither may change data. A read-only service sends `read_only_body` instead of calling `write`.
    Health {
        read: fn(&mut ReadContext) -> Result<(), Failure>,
        write: WriterCheck,
        read_only_body: &'static str,
    },
}

impl endpoint::HandlerKind for Handler {
    fn method(&self) -> &'static str {
        match self {
            Handler::Get(_) | Handler::Health { .. } => "GET",
            Handler::Write(method, _) => method,
        }
    }
}

/// Returns whether the first segment of a path belongs to an operation. A deploy may not have files there, except at
/// the well-known paths.
pub fn is_built_in(path: &str) -> bool {
    let well_known = [well_known::OPERATIONS, well_known::PAGES];
    let is_well_known =
        |row: &&Operation| well_known.iter().any(|rows| rows.iter().any(|own| own.path == row.path));
    router(true)
        .operations()
        .filter(|row| !is_well_known(row))
        .any(|row| path.split('/').nth(1) == row.path.split('/').nth(1))
}

/// The context of a handler that reads.
pub struct ReadContext {
    pub store: Reader,
    /// The damage to the database that the service has found.
    pub damage: Damage,
    /// Finished lists, for repeated requests.
    lists: ListCache,
    /// The pets by status, if an operation counts them.
    pub tally: Option<Tally>,
    /// True for the worker that counts the pets. Its requests may be slow.
    pub may_count: bool,
    assets: Arc<LazyAssets>,
    /// Every setting.
    pub config: Arc<Config>,
}

impl ReadContext {
    /// Creates the context of a reading worker.
    pub fn new(store: Reader, damage: Damage, assets: Arc<LazyAssets>, config: Arc<Config>) -> Self {
        Self { store, damage, lists: ListCache::default(), tally: None, may_count: false, assets, config }
    }

    /// Returns the public URL of a path, or only the path if the public address is unknown.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.config.root().unwrap_or_default())
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
        Self { store, last_write: None }
    }

    /// Notes the result of the last write.
    pub fn written(&mut self, written: Result<(), StoreError>) {
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
                let written = self.store.probe();
                self.written(written.clone());
                written
            }
        }
    }

    /// Fixes the result of the last write for the rest of a test.
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
    use crate::base::http::{Code, Target};

    #[test]
    fn table_is_sound() {
        assert_eq!(flaw(&router(true).operations().collect::<Vec<_>>()), None);
    }

    #[test]
    fn nothing_is_written_without_a_key() {
        for row in router(true).operations().filter(|row| row.writes()) {
            assert!(is_protected(&Target::parse(row.path)), "{}", row.path);
        }
    }

    #[test]
    fn described_operations_have_a_tag_and_a_stability() {
        for row in router(true).operations() {
            let is_described = row.path.starts_with("/v1/");
            assert_eq!(row.tag.is_some(), is_described, "the tag of {}", row.id);
            assert_eq!(row.stability.is_some(), is_described, "the stability of {}", row.id);
        }
    }

    #[test]
    fn get_reads_and_any_other_method_writes() {
        for row in router(true).operations() {
            let is_write = matches!(row.handler, Handler::Write(..));
            assert_eq!(is_write, !["GET", "HEAD", "OPTIONS"].contains(&row.method()), "{}", row.id);
        }
    }

    #[test]
    fn messages_of_every_write_name_no_method() {
        for code in Code::general(true) {
            for row in router(true).operations().filter(|row| row.writes()) {
                assert!(!code.usual_message().contains(row.method()), "{}", code.as_str());
            }
        }
    }

    #[test]
    fn operations_state_how_many_rows_they_read() {
        for row in router(true).operations().chain([&FILE]) {
            assert!(row.rows.is_some(), "{} may read any number of rows", row.id);
        }
    }

    use crate::store::Cause;
    use crate::store::tests::{Folder, refuse_writes};

    #[test]
    fn last_write_counts_for_a_moment() {
        let no = || Err(StoreError::Unavailable(Cause::Locked, "as if just seen".to_owned()));
        let folder = Folder::new();
        let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
        writing.hold(no());
        assert_eq!(writing.takes_writes(), no());
        writing.last_write = Instant::now().checked_sub(LAST_WRITE_COUNTS).map(|at| (at, no()));
        assert_eq!(writing.takes_writes(), Ok(()), "asked again");
        refuse_writes(&writing.store, true);
        writing.hold(Ok(()));
        assert_eq!(writing.takes_writes(), Ok(()));
        writing.written(no());
        assert_eq!(writing.takes_writes(), no());
    }
}
