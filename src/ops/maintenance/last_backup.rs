//! The note about the last dated backup: a small file next to the database, which a running service reads for its
//! metrics.
//!
//! The note is a separate file, because a backup must not write to the database, which may be locked, full or
//! read-only. It records that a sound backup was made, not that the backup still exists: backups are moved elsewhere.

use std::fs::{self, Permissions};
use std::io::{ErrorKind as Os, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic_file::{Partial, flush_name};
use petstore_base::clock;
use petstore_base::error::Error;
use petstore_base::files::open_at_once;

/// The suffix of the note's name.
const SUFFIX: &str = "last-backup";
/// The mode of the note: readable by all, since the service may run as another user than the backup.
const MODE: u32 = 0o644;

/// The content of the note, such as `{"unix_time":1795328740,"pets":12,"is_sound":true}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When the last sound backup was made, in seconds of Unix time; 0: never.
    pub unix_time: i64,
    /// The number of pets in it.
    pub pets: u64,
    /// False if the last backup, or the last attempt at one, had faults.
    pub is_sound: bool,
}

/// Reads the note about a database; `None` if there is none. If the note cannot be read, or its time is later than now,
/// `unix_time` is 0.
pub fn last_backup(database: &Path) -> Option<Note> {
    match open_at_once(&path(database)) {
        Ok(file) => {
            let note: Note = serde_json::from_reader(file).unwrap_or_default();
            Some(Note {
                unix_time: clock::past(note.unix_time).map_or(0, |_| note.unix_time),
                ..note
            })
        }
        Err(error) if error.kind() == Os::NotFound => None,
        Err(_) => Some(Note::default()),
    }
}

impl Note {
    /// Replaces the note about a database in one step.
    ///
    /// # Errors
    /// Fails if this user may not write to the database's folder, or the disk is full or fails.
    pub fn write(self, database: &Path) -> Result<(), Error> {
        let target = path(database);
        let cannot = |error| Error::io(format!("cannot write {}", target.display()), error);
        let text = serde_json::to_vec(&self).map_err(|error| cannot(error.into()))?;
        let mut partial = Partial::beside(&target)?;
        let file = &mut partial.file;
        // Not all file systems have modes.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        file.write_all(&text)
            .and_then(|()| file.sync_all())
            .map_err(cannot)?;
        partial.replace(&target)?;
        flush_name(&target)
    }
}

/// Returns the path of the note: next to the database file, even if `database` is a symbolic link to it.
fn path(database: &Path) -> PathBuf {
    fs::canonicalize(database)
        .unwrap_or_else(|_| database.to_owned())
        .with_added_extension(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;

    #[test]
    fn note_is_found_by_every_name_of_the_database() {
        let folder = Folder::new();
        let (database, link) = (folder.database(), folder.0.join("link.db"));
        fs::write(&database, "").unwrap();
        std::os::unix::fs::symlink(&database, &link).unwrap();
        assert_eq!(last_backup(&database), None);
        let note = Note {
            unix_time: 5,
            pets: 7,
            is_sound: true,
        };
        note.write(&link).unwrap();
        assert_eq!(
            (last_backup(&database), last_backup(&link)),
            (Some(note), Some(note))
        );
        let mode = fs::metadata(folder.0.join("pets.db.last-backup"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, MODE);
    }

    #[test]
    fn note_that_cannot_be_read_is_no_proof() {
        let folder = Folder::new();
        for text in ["", "{}", "nonsense", "[1]"] {
            fs::write(path(&folder.database()), text).unwrap();
            assert_eq!(
                last_backup(&folder.database()),
                Some(Note::default()),
                "{text}"
            );
        }
    }

    #[test]
    fn note_that_cannot_be_read_counts_as_never_and_none_as_none() {
        let folder = Folder::new();
        assert!(last_backup(&folder.database()).is_none());
        fs::create_dir(path(&folder.database())).unwrap();
        assert_eq!(
            last_backup(&folder.database()).map(|note| (note.unix_time, note.is_sound)),
            Some((0, false))
        );
    }
}
