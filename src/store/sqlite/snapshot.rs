//! A whole database at one moment.

use std::path::Path;
use std::{fs, io};

use rusqlite::Connection;

use super::connection::cannot_open;
use super::{Reader, schema};
use crate::store::pets::counts;
use crate::store::statements::COUNT;
use petstore_base::error::{Error, ErrorKind as Kind, fail};

/// A connection with a read transaction that lasts as long as this.
pub struct Snapshot {
    pub reader: Reader,
}

impl Snapshot {
    /// Takes a snapshot of a database that may be in use.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn of_database(path: &Path) -> Result<Self, Error> {
        let reader = Reader::open_existing(path)?;
        // The first read takes it; BEGIN alone does not.
        let begun = reader
            .raw()
            .execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema");
        begun.map_err(|error| cannot_open(path, error))?;
        Ok(Self { reader })
    }

    /// Takes a snapshot of a file that somebody has named.
    ///
    /// # Errors
    /// The kinds of [`of_database`](Self::of_database), but [`ErrorKind::FileMissing`](Kind::FileMissing) if there is no
    /// file.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let real = fs::canonicalize(path).map_err(|error| cannot_read(path, error))?;
        if !real.is_file() {
            let line = format!("{} is not a file", path.display());
            return fail(Kind::InvalidInput, line);
        }
        Self::of_database(&real)
    }

    /// The connection, whose reads are of that moment.
    pub fn connection(&self) -> &Connection {
        self.reader.raw()
    }

    /// The size of the file in bytes.
    ///
    /// # Errors
    /// If the system cannot report it.
    pub fn bytes(&self) -> Result<u64, Error> {
        let watch = &self.reader.watch;
        let file = watch.file.metadata();
        Ok(file
            .map_err(|error| cannot_read(watch.path(), error))?
            .len())
    }

    /// The number of pets; `None` if they cannot be counted.
    pub fn pets(&self) -> Option<u64> {
        let counted = self.connection().query_row(COUNT, [], counts);
        Some(counted.ok()?.total.cast_unsigned())
    }

    /// The text that this database and its copies have in common; `None` if that cannot be read.
    pub fn identity(&self) -> Option<String> {
        schema::identity(self.connection()).ok().flatten()
    }
}

fn cannot_read(path: &Path, error: io::Error) -> Error {
    Error::io(format!("cannot read {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::super::open_file::{log_of, modified};
    use super::super::tests::{Folder, new_pet, pair};
    use super::*;

    /// The number of pets in a snapshot of the file.
    fn pets(snapshot: &Snapshot) -> i64 {
        snapshot
            .connection()
            .query_row("SELECT count(*) FROM pets", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn write_to_a_file_that_is_read_without_locks_is_noticed() {
        let (folder, mut writer, _reader) = pair();
        let mut snapshot = Snapshot::of_database(&folder.database()).unwrap();
        snapshot.reader.watch.unlocked_since = modified(&folder.database());
        snapshot.check().unwrap();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        snapshot.connection().execute_batch("COMMIT").unwrap();
        writer.checkpoint().unwrap();
        assert_eq!(snapshot.check().err().unwrap().kind(), Kind::Conflict);
    }

    #[test]
    fn log_of_a_kill_is_read_too_and_stays() {
        let (folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        let killed = Folder::new();
        for path in [folder.database(), log_of(&folder.database())] {
            fs::copy(&path, killed.0.join(path.file_name().unwrap())).unwrap();
        }
        let log = fs::read(log_of(&killed.database())).unwrap();
        assert_eq!(pets(&Snapshot::of_file(&killed.database()).unwrap()), 1);
        assert!(fs::read(log_of(&killed.database())).unwrap() == log);
    }
}
