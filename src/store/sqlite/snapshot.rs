//! A whole database at one moment.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::log_check::check_log;
use super::open_file::{OpenFile, Stamp, immutable, journal_of, log_of};
use super::opening::open_existing;
use super::{cannot_open, connect, reading, schema};
use crate::error::{Error, ErrorKind as Kind};

/// A connection with a read transaction that lasts as long as this.
pub struct Snapshot {
    pub(super) connection: Connection,
    /// Closed after the connection.
    _file: OpenFile,
    pub(super) path: PathBuf,
    /// The state of the file when it was opened; `None` if SQLite's locks protect it.
    unlocked: Option<Stamp>,
}

impl Snapshot {
    /// Takes a snapshot of a database that may be in use.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn of_database(path: &Path) -> Result<Self, Error> {
        let (connection, file) = open_existing(path)?;
        let snapshot = Self { connection, _file: file, path: path.to_owned(), unlocked: None };
        snapshot.take()?;
        Ok(snapshot)
    }

    /// Takes a snapshot of a file, and changes neither the file nor others next to it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let cannot = |error| Error::io(format!("cannot read {}", path.display()), error);
        let real = fs::canonicalize(path).map_err(cannot)?;
        if !real.is_file() {
            return Err(Error::new(Kind::InvalidInput, format!("{} is not a file", path.display())));
        }
        let file = OpenFile::at(&real).map_err(cannot)?;
        // SQLite would create the log and its index again, and a user who cannot write cannot remove them. If
        // there is no log, nobody has the database open.
        let has_none = !log_of(&real).exists() && !journal_of(&real).exists();
        let is_at_rest = has_none && file.has_log_mode().map_err(cannot)?;
        let unlocked = is_at_rest.then(|| Stamp::of(&real)).transpose().map_err(cannot)?;
        check_log(&real, &file)?;
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let opened = match unlocked {
            Some(_) => connect(&immutable(&real), read_only | OpenFlags::SQLITE_OPEN_URI),
            None => connect(&real, reading(&real)),
        };
        let connection = opened.map_err(|error| cannot_open(path, error))?;
        let snapshot = Self { connection, _file: file, path: real, unlocked };
        snapshot.take()?;
        schema::check_used(&snapshot.connection, path)?;
        Ok(snapshot)
    }

    /// Takes the snapshot. The first read takes it; BEGIN alone does not.
    fn take(&self) -> Result<(), Error> {
        let begun = self.connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema");
        begun.map_err(|error| cannot_open(&self.path, error))
    }

    /// Whether the file is unchanged, if nothing kept others from writing to it.
    pub fn is_unchanged(&self) -> bool {
        self.unlocked.as_ref().is_none_or(|before| Stamp::of(&self.path).is_ok_and(|now| now == *before))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, new_pet, pair};
    use super::*;
    use crate::store::engine::Writes;

    /// How many pets a snapshot of the file has.
    fn pets(snapshot: &Snapshot) -> i64 {
        snapshot.connection.query_row("SELECT count(*) FROM pets", [], |row| row.get(0)).unwrap()
    }

    /// The files of a folder with their content.
    fn files(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }

    #[test]
    fn file_at_rest_is_read_alone_and_its_change_noticed() {
        let (folder, writer, reader) = pair();
        drop((reader, writer));
        let before = files(&folder);
        let snapshot = Snapshot::of_file(&folder.database()).unwrap();
        assert!(snapshot.is_unchanged() && snapshot.unlocked.is_some());
        assert!(files(&folder) == before);
        fs::OpenOptions::new().write(true).open(folder.database()).unwrap().set_len(1 << 20).unwrap();
        assert!(!snapshot.is_unchanged());
    }

    #[test]
    fn log_and_journal_of_a_kill_are_read_too() {
        let (folder, mut writer, reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        let killed = Folder::new();
        for path in [folder.database(), log_of(&folder.database())] {
            fs::copy(&path, killed.0.join(path.file_name().unwrap())).unwrap();
        }
        let log = fs::read(log_of(&killed.database())).unwrap();
        assert_eq!(pets(&Snapshot::of_file(&killed.database()).unwrap()), 1);
        assert!(fs::read(log_of(&killed.database())).unwrap() == log);
        // A change without a log that was killed before its commit.
        drop((reader, writer));
        let other = Connection::open(folder.database()).unwrap();
        other
            .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM pets")
            .unwrap();
        other.cache_flush().unwrap();
        let killed = Folder::new();
        for path in [folder.database(), journal_of(&folder.database())] {
            fs::copy(&path, killed.0.join(path.file_name().unwrap())).unwrap();
        }
        assert_eq!(pets(&Snapshot::of_file(&killed.database()).unwrap()), 1);
    }
}
