//! One connection to the cluster, and its reads.
//!
//! A read batch first asks for the [`Revision`], at a level that sees every acknowledged write. After that, any node
//! may answer: the session asks for the node's revision and the rows in one request, and uses the rows if that revision
//! is not older. Otherwise it asks again at the first level. Announced gets of single pets share a request.
//!
//! A write batch begins in the same way.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{ToSql, params};

use super::client::{ANY_NODE, Client, ClusterFailure, ClusterRows, Statement};
use super::mirror::Mirror;
use super::revision::{REVISION, Revision};
use crate::base::error::ErrorKind;
use crate::store::error::names_what_is_missing;
use crate::store::rows::Visit;
use crate::store::statements::BY_ID;
use crate::store::{Cause, StoreError};

/// The time during which a read tries one node after the other.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The time during which a read tries nodes while the cluster is away: enough for three nodes to reject it.
const SHORT_PATIENCE: Duration = Duration::from_millis(250);
/// The time for which a cluster that did not answer counts as away: requests fail immediately instead of each waiting.
const AWAY: Duration = Duration::from_secs(1);

/// The most pets in one request: few enough that a response takes little memory, even if each has a name of 64 KiB.
const MOST_AT_ONCE: usize = 64;

/// Words that occur only in statements on large tables. The mirror has these tables without rows, and those of a project,
/// which a cluster does not have.
const LARGE: [&str; 2] = ["pets", "retries"];

/// A connection.
pub struct Session {
    pub client: Arc<Client>,
    pub mirror: Mirror,
    state: RefCell<SessionState>,
    prefetch: RefCell<Prefetch>,
}

/// The reads of single pets in a batch. Lists are not among them: the lists of a batch are mostly equal, and cached.
#[derive(Default)]
struct Prefetch {
    /// The announced reads that are still to come.
    announced: VecDeque<Statement>,
    /// The rows of the latest request.
    found: HashMap<Statement, ClusterRows>,
}

#[derive(Default)]
struct SessionState {
    /// The last revision seen.
    seen: Option<Revision>,
    /// The result of beginning the current batch: if the cluster did not answer, the reads of the batch fail. `None`
    /// outside a batch, where each read asks.
    begun: Option<Result<(), StoreError>>,
    /// The error if the cluster did not answer in time, and when to try again; `None` once it answers again.
    away: Option<(StoreError, Instant)>,
    /// A number that changes whenever the database may have changed.
    data_version: i64,
}

impl Session {
    /// Creates a connection that has read nothing yet.
    ///
    /// # Errors
    /// If SQLite cannot make a database in memory.
    pub fn new(client: Arc<Client>) -> Result<Self, StoreError> {
        Ok(Self {
            client,
            mirror: Mirror::new()?,
            state: RefCell::default(),
            prefetch: RefCell::default(),
        })
    }

    /// Begins a batch. Its reads see everything that was acknowledged before.
    ///
    /// # Errors
    /// If the cluster does not answer. The reads of the batch fail then too.
    pub fn begin(&self) -> Result<(), StoreError> {
        let refreshed = self.refresh_unless_away();
        let mut state = self.state.borrow_mut();
        state.begun = Some(refreshed.clone());
        if refreshed.is_err() {
            state.data_version += 1;
        }
        refreshed
    }

    /// Begins a batch, unless one is under way.
    ///
    /// # Errors
    /// If the cluster does not answer, or did not at the beginning.
    pub fn ensure_begun(&self) -> Result<(), StoreError> {
        let begun = self.state.borrow().begun.clone();
        begun.unwrap_or_else(|| self.begin())
    }

    /// Forgets the batch, which cannot fail.
    pub fn end(&self) -> Result<(), StoreError> {
        self.state.borrow_mut().begun = None;
        self.prefetch.take();
        Ok(())
    }

    /// Refreshes. Only the first batch waits for a cluster that is away: after that, one batch a second tries it, and
    /// the others fail immediately.
    fn refresh_unless_away(&self) -> Result<(), StoreError> {
        let away = self.state.borrow().away.clone();
        let (patience, begun) = match away {
            Some((error, again)) if Instant::now() < again => return Err(error),
            // If the node hangs, the next request tries another one.
            Some(_) => (SHORT_PATIENCE, Some(Instant::now())),
            None => (PATIENCE, None),
        };
        let refreshed = self.refresh_within(patience);
        let again = begun.unwrap_or_else(Instant::now) + AWAY;
        self.state.borrow_mut().away = refreshed.clone().err().map(|error| (error, again));
        refreshed
    }

    /// Asks for the revision, and fills the mirror again if it is older.
    ///
    /// # Errors
    /// If the cluster does not answer.
    fn refresh_within(&self, patience: Duration) -> Result<(), StoreError> {
        let start = Instant::now();
        let answers =
            self.client
                .read(&[Statement::plain(REVISION)], self.client.fresh, patience)?;
        let mut revision = Revision::of(&answers[0])?;
        while !self.mirror.is_of(&revision) {
            // If nothing has changed between the first and the last statement, the tables are consistent.
            let [first, last] = [(); 2].map(|()| Statement::plain(REVISION));
            let statements = [vec![first], self.mirror.selects(), vec![last]].concat();
            let mut answers = self.client.read(&statements, self.client.fresh, patience)?;
            let last = Revision::of(&answers.pop().unwrap_or_default())?;
            revision = Revision::of(&answers.remove(0))?;
            if revision.has_same_small_tables(&last) {
                self.mirror.fill(&answers, &revision)?;
            } else if start.elapsed() >= patience {
                let why = "it changes faster than it can be read".to_owned();
                return Err(StoreError::Unavailable(Cause::Conflict, why));
            }
        }
        let mut state = self.state.borrow_mut();
        if state.seen.as_ref() != Some(&revision) {
            state.data_version += 1;
            state.seen = Some(revision);
        }
        Ok(())
    }

    /// Returns `true` if a database of this revision has all that this connection has seen.
    pub fn has_seen_no_more_than(&self, revision: &Revision) -> bool {
        self.seen().is_none_or(|seen| revision.has_all_of(&seen))
    }

    /// The last revision seen.
    pub fn seen(&self) -> Option<Revision> {
        self.state.borrow().seen.clone()
    }

    /// Returns the error with which the current batch began, if it could not begin.
    pub fn begun(&self) -> Result<(), StoreError> {
        self.state.borrow().begun.clone().unwrap_or(Ok(()))
    }

    /// Returns the rows of each statement, no older than the last revision seen.
    fn ask(&self, statements: &[Statement]) -> Result<Vec<ClusterRows>, StoreError> {
        let statements = [&[Statement::plain(REVISION)], statements].concat();
        let ask = |level| -> Result<Option<Vec<ClusterRows>>, StoreError> {
            let mut rows = self.client.read(&statements, level, PATIENCE)?;
            let revision = Revision::of(&rows.remove(0))?;
            Ok(self.has_seen_no_more_than(&revision).then_some(rows))
        };
        match ask(ANY_NODE) {
            Ok(Some(rows)) => return Ok(rows),
            Err(error) if error.passes() => return Err(error),
            // A node that lags behind may fail, such as because it lacks a table.
            Ok(None) | Err(_) => {}
        }
        ask(self.client.fresh)?.ok_or_else(|| {
            let why = "the cluster has another database than a moment ago".to_owned();
            StoreError::Unavailable(Cause::Unreachable, why)
        })
    }
}

/// The methods of [`Reader`](crate::store::Reader), which describes them.
impl Session {
    pub fn rows(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        visit: &mut Visit,
    ) -> Result<(), StoreError> {
        // Within a batch, no read is older than the beginning of the batch.
        let begun = self.state.borrow().begun.clone();
        begun.unwrap_or_else(|| self.refresh_unless_away())?;
        if !is_large(sql) {
            return self.mirror.rows(sql, values, visit);
        }
        let statement = Statement::new(sql, values)?;
        let rows = if sql == BY_ID {
            self.prefetch(statement)?
        } else {
            self.ask(&[statement])?.pop().unwrap_or_default()
        };
        self.mirror.visit(&rows, visit)
    }

    pub fn data_version(&self) -> i64 {
        self.state.borrow().data_version
    }

    pub fn check_path(&self) -> Result<(), StoreError> {
        Ok(())
    }

    pub fn announce_pets(&self, ids: impl Iterator<Item = i64>) {
        let statements = ids.filter_map(|id| Statement::new(BY_ID, params![id]).ok());
        self.prefetch.borrow_mut().announced = statements.collect();
    }

    /// Returns the rows of a read of one pet, and requests them together with those of the announced reads after it.
    fn prefetch(&self, statement: Statement) -> Result<ClusterRows, StoreError> {
        let mut prefetch = self.prefetch.borrow_mut();
        if let Some(rows) = prefetch.found.get(&statement) {
            return Ok(rows.clone());
        }
        let count = prefetch.announced.len().min(MOST_AT_ONCE);
        let mut wanted: HashSet<Statement> = prefetch.announced.drain(..count).collect();
        wanted.insert(statement.clone());
        let wanted: Vec<Statement> = wanted.into_iter().collect();
        let rows = self.ask(&wanted).inspect_err(|error| {
            let mut state = self.state.borrow_mut();
            // If the cluster is away, the reads that follow fail at once.
            if error.passes() && state.begun.is_some() {
                state.begun = Some(Err(error.clone()));
            }
        })?;
        prefetch.found = wanted.into_iter().zip(rows).collect();
        Ok(prefetch.found.get(&statement).cloned().unwrap_or_default())
    }
}

/// Returns `true` if a statement is on a large table, whose rows only the cluster has.
pub fn is_large(sql: &str) -> bool {
    LARGE.iter().any(|table| sql.contains(table))
}

impl From<ClusterFailure> for StoreError {
    fn from(failure: ClusterFailure) -> Self {
        let unavailable = Self::Unavailable;
        match failure {
            ClusterFailure::Statement(_, why) if names_what_is_missing(&why) => {
                unavailable(Cause::SchemaChanged, why)
            }
            ClusterFailure::Statement(_, why) if why.contains("disk is full") => {
                unavailable(Cause::Full, why)
            }
            ClusterFailure::Statement(_, why) => Self::Internal(why),
            ClusterFailure::Node(trouble) => {
                let cause = match trouble.kind {
                    _ if trouble.may_be_done => Cause::Unknown,
                    ErrorKind::PasswordRefused => Cause::Denied,
                    _ => Cause::Unreachable,
                };
                unavailable(cause, trouble.text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_change_during_each_read_are_not_waited_for_without_end() {
        let row = |changes: usize| format!(r#"{{"values":[[{changes},0,""]]}}"#);
        let address = super::super::tests::pretender(move |request| {
            let mut results = vec![row(2 * request)];
            if request > 0 {
                results.extend(crate::store::rqlite::mirror::TABLES.map(|_| "{}".to_owned()));
                results.push(row(2 * request + 1));
            }
            Some(format!(r#"{{"results":[{}]}}"#, results.join(",")))
        });
        let client = Client::new(
            crate::store::rqlite::client::ClusterAddress::parse(&address).unwrap(),
            None,
        )
        .unwrap();
        let session = Session::new(Arc::new(client)).unwrap();
        let failed = session.refresh_within(Duration::ZERO);
        assert!(
            matches!(failed, Err(StoreError::Unavailable(Cause::Conflict, _))),
            "{failed:?}"
        );
    }

    #[test]
    fn what_sqlite_says_decides_what_clients_are_told() {
        let of = |why: &str| StoreError::from(ClusterFailure::Statement(1, why.to_owned()));
        let why = "database or disk is full";
        assert_eq!(
            of(why),
            StoreError::Unavailable(Cause::Full, why.to_owned())
        );
        let why = "no such table: pets";
        assert_eq!(
            of(why),
            StoreError::Unavailable(Cause::SchemaChanged, why.to_owned())
        );
        let why = "table pets has no column named status";
        assert_eq!(
            of(why),
            StoreError::Unavailable(Cause::SchemaChanged, why.to_owned())
        );
        for why in ["there is no such pet", "the pet has no column named so"] {
            assert_eq!(of(why), StoreError::Internal(why.to_owned()));
        }
    }
}
