//! One connection to the cluster, and its reads.
//!
//! A batch begins with the question for the [`Revision`], at a level that sees every acknowledged write. After that, any
//! node may answer: the connection asks for the node's revision and the rows in one request, and uses the rows if that
//! revision is not older. Otherwise it asks again at the first level.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{ToSql, params};

use super::{connect, random_name, schema, statement};
use crate::model::{ApiKey, FULL_PAGE_BYTES, KeyScope, Order, Pet, PetCounts, PetQuery};
use crate::store::cluster::{Keys, Revision};
use crate::store::idempotency::IdempotencyClock;
use crate::store::keys::KEYS;
use crate::store::statements::{BY_ID, COUNT, IMPORTED, LAST_ID, ListStatement};
use crate::store::{Cause, ImportNote, StoreError, names_what_is_missing};
use petstore_base::error::{Error, ErrorKind};
use petstore_base::http::limits::MAX_BODY_BYTES;
use petstore_cluster::{ANY_NODE, Client, ClusterFailure, ClusterRows, ClusterValue, Statement};

/// The time during which a read tries one node after the other.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The time during which a batch is sent again until a node answers. After that, its outcome is unknown.
pub const SEND_FOR: Duration = Duration::from_secs(8);
/// The time during which a read tries nodes while the cluster is away: enough for three nodes to reject it.
const SHORT_PATIENCE: Duration = Duration::from_millis(250);
/// The time for which a cluster that did not answer counts as away: requests fail immediately instead of each waiting.
const AWAY: Duration = Duration::from_secs(1);
/// The most pets in one request: few enough that a response takes little memory, even if each has a name of 64 KiB.
const MOST_AT_ONCE: usize = 64;

/// The bytes of names that end a list: with the longest name after it, a page is full.
const LIST_BYTES: usize = FULL_PAGE_BYTES + MAX_BODY_BYTES;

/// The state of what clients can see. A create raises `seq`, and triggers count other changes in `changes`.
pub const REVISION: &str = "SELECT changes, ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'pets'), 0), \
    ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'), '') FROM cluster_changes";
const HAS_HAD_KEYS: &str = "SELECT 1 FROM sqlite_sequence WHERE name = 'api_keys'";

/// A connection. Each thread has its own.
pub struct Cluster {
    pub(super) client: Arc<Client>,
    /// The last revision seen.
    seen: Option<Revision>,
    /// The error if the cluster did not answer in time, and when to try again; `None` once it answers again.
    away: Option<(StoreError, Instant)>,
    /// Its random name as a writer.
    pub(super) name: String,
    /// The number of its last batch.
    pub(super) batch: i64,
    pub(super) retry_clock: IdempotencyClock,
    /// The time during which a batch is sent again until a node answers.
    pub(super) patience: Duration,
    pub(super) probed: Option<(Instant, Result<(), StoreError>)>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Cluster({})", self.client.address)
    }
}

impl Cluster {
    /// Opens a connection, and makes or updates the schema.
    ///
    /// # Errors
    /// If the cluster does not answer, or its database is not ours.
    pub fn open(location: &Path) -> Result<Self, Error> {
        let client = connect(location)?;
        schema::migrate(&client, location)?;
        Self::new(client)
    }

    /// Opens a connection to a database whose schema is up to date.
    ///
    /// # Errors
    /// If the cluster does not answer, or has no database of this version.
    pub fn open_existing(location: &Path) -> Result<Self, Error> {
        let client = connect(location)?;
        schema::require_current(&client, location)?;
        Self::new(client)
    }

    /// # Errors
    /// If the system has no random numbers.
    pub(super) fn new(client: Arc<Client>) -> Result<Self, Error> {
        Ok(Self {
            client,
            seen: None,
            away: None,
            name: random_name()?,
            batch: 0,
            retry_clock: IdempotencyClock::default(),
            patience: SEND_FOR,
            probed: None,
        })
    }

    /// Describes the cluster for the log.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn describe(&self) -> Result<String, Error> {
        let version = self.client.rqlite_version(schema::PATIENCE)?;
        Ok(format!(
            "cluster {} of rqlite {version}",
            self.client.address
        ))
    }

    /// Begins a batch: what is read from now on is no older than what was acknowledged before. Only the first batch waits
    /// for a cluster that is away: after that, one batch a second tries it, and the others fail immediately.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn begin(&mut self) -> Result<Revision, StoreError> {
        let (patience, begun) = match &self.away {
            Some((error, again)) if Instant::now() < *again => return Err(error.clone()),
            // If the node hangs, the next request tries another one.
            Some(_) => (SHORT_PATIENCE, Some(Instant::now())),
            None => (PATIENCE, None),
        };
        let asked = self.fresh_revision(patience);
        let again = begun.unwrap_or_else(Instant::now) + AWAY;
        self.away = asked.clone().err().map(|error| (error, again));
        let revision = asked?;
        self.seen = Some(revision.clone());
        Ok(revision)
    }

    fn fresh_revision(&self, patience: Duration) -> Result<Revision, StoreError> {
        let ask = [Statement::plain(REVISION)];
        revision(
            &self
                .client
                .read(&ask, self.client.fresh, patience)?
                .concat(),
        )
    }

    /// Returns `true` if a database of this revision has all that this connection has seen.
    pub(super) fn has_seen_no_more_than(&self, revision: &Revision) -> bool {
        self.seen
            .as_ref()
            .is_none_or(|seen| revision.has_all_of(seen))
    }

    /// Returns the rows of each statement, no older than the beginning of the batch.
    fn ask(&self, statements: &[Statement]) -> Result<Vec<ClusterRows>, StoreError> {
        let statements = [&[Statement::plain(REVISION)], statements].concat();
        let ask = |level| -> Result<Option<Vec<ClusterRows>>, StoreError> {
            let mut rows = self.client.read(&statements, level, PATIENCE)?;
            let revision = revision(&rows.remove(0))?;
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

    fn ask_one(&self, sql: &str, values: &[&dyn ToSql]) -> Result<ClusterRows, StoreError> {
        let statement = statement(sql, values)?;
        Ok(self.ask(&[statement])?.pop().unwrap_or_default())
    }

    /// The pets with these ids that exist.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn pets(&self, ids: &[i64]) -> Result<HashMap<i64, Pet<'static>>, StoreError> {
        let mut found = HashMap::new();
        for ids in ids.chunks(MOST_AT_ONCE) {
            let statements: Result<Vec<_>, _> =
                ids.iter().map(|id| statement(BY_ID, params![id])).collect();
            let pets = self.ask(&statements?)?.concat();
            found.extend(pets.iter().map(|row| pet(row)).map(|pet| (pet.id, pet)));
        }
        Ok(found)
    }

    /// The pets of a list, and one more if more follow. Long names end it earlier, so fewer pets do not mean that no more follow.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn list(&self, query: &PetQuery) -> Result<Vec<Pet<'static>>, StoreError> {
        let Some(list) = ListStatement::of(query) else {
            return Ok(Vec::new());
        };
        let page = list.sql;
        let order = match query.page.order {
            Order::Ascending => "ORDER BY id",
            Order::Descending => "ORDER BY id DESC",
        };
        let sql = format!(
            "SELECT id, name, category_id, status FROM (SELECT *, sum(octet_length(name)) OVER \
             ({order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({page})) \
             WHERE ifnull(before, 0) < {LIST_BYTES} {order}"
        );
        let pets = self.ask_one(&sql, &list.values())?;
        Ok(pets.iter().map(|row| pet(row)).collect())
    }

    /// Counts the pets.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn counts(&self) -> Result<PetCounts, StoreError> {
        let rows = self.ask_one(COUNT, &[])?.concat();
        let numbers: Vec<i64> = rows.iter().filter_map(ClusterValue::integer).collect();
        match numbers.as_slice() {
            &[total, available, pending, sold] => {
                Ok(PetCounts::new(total, available, pending, sold))
            }
            _ => Err(StoreError::Internal(
                "the cluster counts no pets".to_owned(),
            )),
        }
    }

    /// The API keys.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn keys(&self) -> Result<Keys, StoreError> {
        let found = self.ask(&[KEYS, HAS_HAD_KEYS].map(Statement::plain))?;
        let [keys, has_had] = found.as_slice() else {
            return Ok(Keys::default());
        };
        Ok(Keys {
            all: keys.iter().filter_map(|row| api_key(row)).collect(),
            has_ever_had_one: !has_had.is_empty(),
        })
    }

    /// The import whose input has this digest, and the greatest id ever assigned to a pet.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn imported(&self, input: &[u8]) -> Result<(Option<ImportNote>, i64), StoreError> {
        let asked = [
            statement(IMPORTED, params![input])?,
            Statement::plain(LAST_ID),
        ];
        let rows = self.ask(&asked)?;
        let [note, last] = [0, 1].map(|n| -> Vec<i64> {
            let values = rows.get(n).into_iter().flatten().flatten();
            values.filter_map(ClusterValue::integer).collect()
        });
        let note = match note.as_slice() {
            &[at, least, greatest] => Some(ImportNote {
                at,
                ids: (least, greatest),
            }),
            _ => None,
        };
        Ok((note, last.first().copied().unwrap_or_default()))
    }
}

/// The revision in an answer to [`REVISION`].
///
/// # Errors
/// If the answer has no revision.
pub fn revision(rows: &ClusterRows) -> Result<Revision, StoreError> {
    match rows.first().map(Vec::as_slice) {
        Some(
            [
                ClusterValue::Integer(changes),
                ClusterValue::Integer(seq),
                ClusterValue::Text(mark),
            ],
        ) => Ok(Revision {
            changes: *changes,
            seq: *seq,
            mark: mark.clone(),
        }),
        _ => {
            let why = "it has no counter of changes".to_owned();
            Err(StoreError::Unavailable(Cause::SchemaChanged, why))
        }
    }
}

/// The pet of a row of its id and its columns. A value that no pet can have is read as none.
fn pet(row: &[ClusterValue]) -> Pet<'static> {
    let integer = |column: usize| row.get(column).and_then(ClusterValue::integer);
    let text = |column: usize| row.get(column).map(ClusterValue::text).unwrap_or_default();
    Pet {
        id: integer(0).unwrap_or_default(),
        name: text(1).into(),
        category_id: integer(2).unwrap_or_default(),
        status: text(3).parse().ok(),
    }
}

/// The key of a row of [`KEYS`]; `None` if its digest has the wrong length, so that nobody can use it.
fn api_key(row: &[ClusterValue]) -> Option<ApiKey> {
    let [ClusterValue::Blob(digest), name, columns @ ..] = row else {
        return None;
    };
    let integer = |column: usize| columns.get(column).and_then(ClusterValue::integer);
    Some(ApiKey {
        digest: digest.as_slice().try_into().ok()?,
        name: name.text(),
        scope: KeyScope::of_columns(integer(0), integer(1)),
        created_at: integer(2).unwrap_or_default(),
        expires_at: match columns.get(3) {
            Some(ClusterValue::Null) => None,
            _ => Some(integer(3).unwrap_or_default()),
        },
        last_used_at: integer(4),
    })
}

impl From<ClusterFailure> for StoreError {
    fn from(failure: ClusterFailure) -> Self {
        match failure {
            ClusterFailure::Statement(_, why) if names_what_is_missing(&why) => {
                Self::Unavailable(Cause::SchemaChanged, why)
            }
            ClusterFailure::Statement(_, why) if why.contains("disk is full") => {
                Self::Unavailable(Cause::Full, why)
            }
            ClusterFailure::Statement(_, why) => Self::Internal(why),
            ClusterFailure::Node(trouble) if trouble.may_be_done => {
                Self::Unavailable(Cause::Unknown, trouble.text)
            }
            ClusterFailure::Node(trouble) if trouble.kind == ErrorKind::PasswordRefused => {
                Self::Unavailable(Cause::Denied, trouble.text)
            }
            ClusterFailure::Node(trouble) => Self::Unavailable(Cause::Unreachable, trouble.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_says_decides_what_clients_are_told() {
        let of = |why: &str| StoreError::from(ClusterFailure::Statement(1, why.to_owned()));
        for (why, cause) in [
            ("database or disk is full", Cause::Full),
            ("no such table: pets", Cause::SchemaChanged),
            (
                "table pets has no column named status",
                Cause::SchemaChanged,
            ),
        ] {
            let expected = StoreError::Unavailable(cause, why.to_owned());
            assert_eq!(of(why), expected);
        }
        for why in ["there is no such pet", "the pet has no column named so"] {
            assert_eq!(of(why), StoreError::Internal(why.to_owned()));
        }
    }
}
