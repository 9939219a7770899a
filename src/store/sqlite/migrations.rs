//! The migrations: the steps from an empty file to the newest version of the schema.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::connection::cannot_open;
use petstore_base::error::Error;

/// Marks the file as ours in its header: the letters "pets" (`sqlite.org/pragma.html#pragma_application_id`).
pub const APPLICATION_ID: i64 = 0x7065_7473;

/// The steps from an empty file to the newest version; `user_version` counts those done. Append only: a step that is
/// released is never edited.
pub const STEPS: &[&str] = &[include_str!("../../../schema.sql")];

/// Gives a database its identity: a random text, which its copies share.
pub const IDENTIFY: &str = "INSERT INTO sqlite_sequence (name, seq) SELECT 'petstore database', ?1 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'petstore database')";

/// The version of a database that the service has opened.
pub const VERSION: usize = STEPS.len();

/// The `user_version` of a file with every step done.
pub fn newest_version(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// The number of steps that the file has behind it; 0 if it is empty.
pub fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_one(None, "user_version")
}

/// Brings the file to the newest version, in one transaction.
pub fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), Error> {
    let mut migrate = || -> rusqlite::Result<()> {
        // If there is nothing to do, no lock is needed.
        if schema_version(connection)? == newest_version(steps) {
            return Ok(());
        }
        // IMMEDIATE: if two processes start at once, the second finds the work done.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = schema_version(&transaction)?;
        if done < newest_version(steps) {
            for step in steps.iter().skip(usize::try_from(done).unwrap_or(0)) {
                transaction.execute_batch(step)?;
            }
            transaction.execute_batch(&IDENTIFY.replace("?1", "hex(randomblob(16))"))?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", newest_version(steps))?;
        }
        transaction.commit()
    };
    migrate().map_err(|error| cannot_open(path, error))
}

#[cfg(test)]
mod tests {
    use super::super::schema::check;
    use super::super::{Writer, tests::Folder};
    use super::*;
    use petstore_base::error::ErrorKind;

    fn schema_version(connection: &Connection) -> i64 {
        super::schema_version(connection).unwrap()
    }

    /// The SHA-256 of each step that is released.
    const RELEASED: &[&str] = &[];

    #[test]
    fn released_step_is_never_edited() {
        let digest = |step: &&str| -> String {
            let hash = hmac_sha256::Hash::hash(step.as_bytes());
            hash.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let digests: Vec<String> = STEPS.iter().map(digest).collect();
        let why = "a released step was edited: add a further one to STEPS instead";
        assert!(
            digests.starts_with(&RELEASED.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "{why}"
        );
        let changes = include_str!("../../../CHANGELOG.md");
        let newest = changes
            .lines()
            .find(|line| line.starts_with("## "))
            .unwrap();
        let is_complete = newest.contains("unreleased") || RELEASED.len() == STEPS.len();
        assert!(
            is_complete,
            "{newest}: add to RELEASED: {:?}",
            digests.last()
        );
    }

    #[test]
    fn opening_twice_changes_nothing() {
        let folder = Folder::new();
        let files = [(); 2].map(|()| {
            let writer = Writer::open(&folder.database()).unwrap();
            assert_eq!(schema_version(writer.raw()), newest_version(STEPS));
            drop(writer);
            std::fs::read(folder.database()).unwrap()
        });
        assert_eq!(files[0], files[1], "not even the header is written again");
    }

    #[test]
    fn later_step_is_done_once_and_keeps_what_is_there() {
        let folder = Folder::new();
        let path = folder.database();
        let mut writer = Writer::open(&path).unwrap();
        writer
            .insert_pet(&super::super::tests::new_pet("Rex"), None)
            .unwrap();
        writer.commit().unwrap();
        drop(writer);
        let further: Vec<&str> = [
            STEPS,
            &["ALTER TABLE pets ADD COLUMN theirs TEXT; UPDATE pets SET theirs = 'x'"],
        ]
        .concat();
        let mut connection = Connection::open(&path).unwrap();
        for _ in 0..2 {
            check(&connection, &path, &further).unwrap();
            migrate(&mut connection, &path, &further).unwrap();
            assert_eq!(schema_version(&connection), newest_version(STEPS) + 1);
            let kept: String = connection
                .query_row("SELECT name || theirs FROM pets", [], |row| row.get(0))
                .unwrap();
            assert_eq!(kept, "Rexx");
        }
        assert_eq!(
            check(&connection, &path, STEPS).unwrap_err().kind(),
            ErrorKind::DatabaseNewer
        );
    }

    #[test]
    fn step_that_fails_leaves_the_version_before() {
        let folder = Folder::new();
        let path = folder.database();
        drop(Writer::open(&path).unwrap());
        let broken: Vec<&str> = [STEPS, &["CREATE TABLE half (x); nonsense"]].concat();
        let mut connection = Connection::open(&path).unwrap();
        assert!(migrate(&mut connection, &path, &broken).is_err());
        assert_eq!(schema_version(&connection), newest_version(STEPS));
        assert!(
            connection
                .execute("INSERT INTO half VALUES (1)", [])
                .is_err(),
            "undone with its step"
        );
    }

    #[test]
    fn locked_file_is_named_as_such() {
        let folder = Folder::new();
        let path = folder.database();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut connection = Connection::open(&path).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let error = migrate(&mut connection, &path, STEPS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DatabaseLocked);
        assert!(
            error.to_string().contains("is locked by another process"),
            "{error}"
        );
    }
}
