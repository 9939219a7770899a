//! Opens a connection that changes nothing in the database. It can be that of a service, a copy, or a file on a disk that
//! can only be read. Next to a file without a write-ahead log, SQLite makes an empty one and its index if it may.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, ffi};

use super::claim::{has_log, open_with_own_log, refuse_log_of_another};
use super::connection::{cannot_open, connect, connect_alone, reading};
use super::open_file::modified;
use super::{Reader, schema};
use petstore_base::error::Error;

impl Reader {
    /// Opens a connection that cannot write.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database of this version, has the log of another one, or this user may
    /// not read it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let reader = Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::refuse_older(reader.raw(), path)?;
        Ok(reader)
    }

    /// Opens an existing database without changing it, whether a service has it or not.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, reading(path))
    }

    fn open_with(path: &Path, access: OpenFlags) -> Result<Self, Error> {
        let file = open_with_own_log(path)?;
        let read = |connection: Connection| {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok::<Connection, rusqlite::Error>(connection)
        };
        let open = |access: OpenFlags| {
            let connection = connect(path, access)?;
            // Otherwise SQLite would leave a log that the file's owner could not write.
            if access.contains(OpenFlags::SQLITE_OPEN_READ_WRITE)
                && connection.is_readonly(MAIN_DB)?
            {
                let failure = ffi::Error::new(ffi::SQLITE_READONLY);
                return Err(rusqlite::Error::SqliteFailure(failure, None));
            }
            read(connection)
        };
        let mut unlocked_since = None;
        let opened = open(access).or_else(|error| match error.sqlite_error() {
            // SQLite cannot make the log's index here, and the file alone is whole
            // (sqlite.org/wal.html#read_only_databases). If somebody else can write here, the watch notices. A journal that
            // is not refused would change nothing in it.
            Some(failure) if lacks_index(failure) && !has_log(path) => {
                unlocked_since = modified(path);
                connect_alone(path).and_then(read)
            }
            // With a log as well, as a power cut may leave them, the journal comes first.
            Some(failure) if failure.extended_code == ffi::SQLITE_READONLY_ROLLBACK => {
                open(OpenFlags::SQLITE_OPEN_READ_WRITE)
            }
            _ => Err(error),
        });
        let connection = opened.map_err(|error| cannot_open(path, error))?;
        schema::check_used(&connection, path)?;
        refuse_log_of_another(path, &connection)?;
        Ok(Self::new(path, connection, file, unlocked_since))
    }
}

/// Returns true if SQLite could not make a file next to the database, in a folder that takes none or on a full disk, or
/// may not play back its journal.
fn lacks_index(failure: &ffi::Error) -> bool {
    matches!(
        failure.code,
        ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::DiskFull
    ) || [
        ffi::SQLITE_IOERR_SHMOPEN,
        ffi::SQLITE_IOERR_SHMSIZE,
        ffi::SQLITE_IOERR_SHMMAP,
    ]
    .contains(&failure.extended_code)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, names, new_pet, pair};
    use super::super::{Writer, log_of, migrations};
    use super::*;
    use petstore_base::error::ErrorKind;

    #[test]
    fn only_reader_sees_each_commit_and_takes_nothing_from_the_writer() {
        let (folder, mut writer, _reader) = pair();
        let mut only = Reader::open(&folder.database()).unwrap();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut only), ["Rex"]);
        assert_eq!(writer.checkpoint(), Ok(()));
        assert_eq!(
            (only.check_path(), names(&mut only)),
            (Ok(()), vec!["Rex".to_owned()])
        );
        assert!(only.raw().execute("DELETE FROM pets", []).is_err());
    }

    #[test]
    fn log_that_a_kill_has_left_is_read_and_stays() {
        let (folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        let killed = Folder::new();
        for path in [folder.database(), log_of(&folder.database())] {
            std::fs::copy(&path, killed.0.join(path.file_name().unwrap())).unwrap();
        }
        let log = std::fs::read(log_of(&killed.database())).unwrap();
        let mut only = Reader::open(&killed.database()).unwrap();
        assert_eq!(names(&mut only), ["Rex"]);
        drop(only);
        assert_eq!(std::fs::read(log_of(&killed.database())).unwrap(), log);
    }

    #[test]
    fn other_versions_are_refused() {
        let (folder, writer, _reader) = pair();
        let newest = migrations::newest_version(migrations::STEPS);
        for (version, kind) in [
            (newest + 1, ErrorKind::DatabaseNewer),
            (0, ErrorKind::SchemaChanged),
        ] {
            writer
                .raw()
                .pragma_update(None, "user_version", version)
                .unwrap();
            assert_eq!(Reader::open(&folder.database()).err().unwrap().kind(), kind);
        }
    }

    #[test]
    fn change_of_a_file_that_nobody_could_change_is_noticed() {
        let (folder, mut writer, _reader) = pair();
        let mut only = Reader::open(&folder.database()).unwrap();
        only.watch.unlocked_since = modified(&folder.database());
        assert_eq!(only.check_path(), Ok(()));
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        writer.checkpoint().unwrap();
        assert!(only.check_path().unwrap_err().is_lost());
    }

    #[test]
    fn missing_database_is_not_made() {
        let folder = Folder::new();
        assert_eq!(
            Reader::open(&folder.database()).err().unwrap().kind(),
            ErrorKind::DatabaseMissing
        );
        assert!(!folder.database().exists());
        drop(Writer::open(&folder.database()).unwrap());
        Reader::open(&folder.database()).unwrap();
    }

    #[test]
    fn empty_or_missing_file_is_named_and_left() {
        let folder = Folder::new();
        let path = folder.database();
        let said = || Reader::open_existing(&path).err().unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseMissing);
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseMissing);
        assert!(said().to_string().contains("is empty"), "{}", said());
        std::fs::write(&path, "some text that goes on for a while").unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseForeign);
    }
}
