//! Brings the database of a cluster up to date. If several instances start at once, one migrates: the first statement
//! rejects a database whose version has changed.

use std::path::Path;
use std::time::Duration;

use rusqlite::params;

use super::{random_name, statement};
use crate::store::StoreError;
use crate::store::migrations::{APPLICATION_ID, IDENTIFY, STEPS, newest_version};
use crate::store::schema::{foreign, newer};
use petstore_base::error::{Error, ErrorKind};
use petstore_cluster::{Client, ClusterFailure, ClusterValue, Statement};

/// How long the cluster may be away when a service or a command starts: an election takes a few seconds.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// The number of times that a start checks again after another instance was faster.
const MOST_TRIES: usize = 10;

/// The version, the application id, the number of objects, and the number of triggers of a cluster.
const STATE: &str = "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema), \
    (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'cluster\\_%' ESCAPE '\\' \
        AND tbl_name IN ('pets', 'api_keys')) \
    FROM pragma_user_version, pragma_application_id";
const OWN: &str = include_str!("cluster.sql");
/// A batch that is rejected if the version has changed.
const GUARD: &str = "INSERT INTO cluster_batches (writer, batch, first, is_current) \
    SELECT ?1, 1, 0, CASE WHEN user_version = ?2 THEN 1 END FROM pragma_user_version";
/// A random number that stays the same until a restore, so that instances notice one.
const MARK: &str = "INSERT INTO sqlite_sequence (name, seq) SELECT 'petstore log', ?1 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'petstore log')";

/// Requires a database whose schema is up to date.
///
/// # Errors
/// If the schema is older, the database is foreign or newer, or the cluster does not answer.
pub fn require_current(client: &Client, path: &Path) -> Result<(), Error> {
    if state(client, path)? == current() {
        Ok(())
    } else {
        Err(unused(path))
    }
}

/// Returns `true` if services may have written to the database since it was created or restored. If an earlier version
/// created it, services of that version may still run, and nothing can keep them from writing.
///
/// # Errors
/// The errors of [`require_current`], or an error if the database is of an earlier version.
pub fn is_in_use(client: &Client, path: &Path) -> Result<bool, Error> {
    match state(client, path)? {
        state if state == current() => Ok(true),
        // It is empty, or a restore was killed before it added what only a cluster has.
        (version, 0) if version == 0 || version == newest() => Ok(false),
        _ => Err(unused(path)),
    }
}

/// Creates the schema, or applies the migration steps that it lacks.
///
/// # Errors
/// The errors of [`require_current`], or an error if the cluster cannot be written.
pub fn migrate(client: &Client, path: &Path) -> Result<(), Error> {
    for _ in 0..MOST_TRIES {
        let state = state(client, path)?;
        if state == current() {
            return Ok(());
        }
        let (version, _) = state;
        // First, so that an interrupted start leaves a database that is known as ours.
        client.write(
            &[Statement::plain(format!(
                "PRAGMA application_id = {APPLICATION_ID}"
            ))],
            PATIENCE,
        )?;
        let writer = random_name()?;
        // Together with the triggers, because services write as soon as they find these tables.
        let mut statements = vec![
            Statement::plain(OWN),
            statement(GUARD, params![writer, version])?,
        ];
        let done = usize::try_from(version).unwrap_or(0);
        statements.extend(STEPS.iter().skip(done).map(|step| Statement::plain(*step)));
        statements.extend(triggers().into_iter().map(Statement::plain));
        statements.push(statement(
            MARK,
            params![format!("{} 0", writer[..16].to_ascii_uppercase())],
        )?);
        statements.push(statement(IDENTIFY, params![writer])?);
        statements.push(Statement::plain(format!(
            "PRAGMA user_version = {}",
            newest()
        )));
        match client.write(&statements, PATIENCE) {
            // This request or another instance has migrated it: check again.
            Ok(_) | Err(ClusterFailure::Statement(1, _)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let message = format!(
        "the schema of {} cannot be brought to this version; has another program made triggers named cluster_…?",
        client.address
    );
    Err(StoreError::Internal(message).into())
}

fn newest() -> i64 {
    newest_version(STEPS)
}

/// The [`state`] of a database that is up to date.
fn current() -> (i64, usize) {
    (newest(), triggers().len())
}

/// The version of the schema, and the number of triggers of a cluster.
fn state(client: &Client, path: &Path) -> Result<(i64, usize), Error> {
    let rows = client.read(&[Statement::plain(STATE)], client.fresh, PATIENCE)?;
    let row: Vec<i64> = rows
        .iter()
        .flatten()
        .flatten()
        .filter_map(ClusterValue::integer)
        .collect();
    let &[version, application, objects, triggers] = row.as_slice() else {
        return Err(StoreError::Internal(
            "the cluster does not tell the version of its schema".to_owned(),
        )
        .into());
    };
    if application != APPLICATION_ID && (application, version, objects) != (0, 0, 0) {
        return Err(foreign(path));
    }
    if version > newest() {
        return Err(newer(path, version));
    }
    Ok((version, usize::try_from(triggers).unwrap_or(0)))
}

/// The refusal of a database that no service has used yet.
fn unused(path: &Path) -> Error {
    let message = format!(
        "{} is empty, or not up to date: no service of this version has used it yet",
        path.display()
    );
    Error::new(ErrorKind::ClusterOutdated, message)
}

/// The triggers that count changes. A create is not counted: it raises the sequence of the pets.
fn triggers() -> Vec<String> {
    let trigger = |table: &str, event: &str| {
        let what = match (table, event) {
            // Only a pet whose id was used before or left out.
            ("pets", "INSERT") => {
                "WHEN new.id <= (SELECT seq FROM sqlite_sequence WHERE name = 'pets')"
            }
            _ => "",
        };
        // The last use of a key does not count as a change.
        let event_of = match (table, event) {
            ("api_keys", "UPDATE") => {
                "UPDATE OF id, digest, name, read_only, is_admin, created_at, expires_at"
            }
            _ => event,
        };
        format!(
            "CREATE TRIGGER IF NOT EXISTS cluster_{table}_{} AFTER {event_of} ON {table} {what} \
             BEGIN UPDATE cluster_changes SET changes = changes + 1; END",
            event.to_ascii_lowercase()
        )
    };
    ["pets", "api_keys"]
        .iter()
        .flat_map(|table| ["INSERT", "UPDATE", "DELETE"].map(|event| trigger(table, event)))
        .collect()
}
