//! The dated backups of one database in a folder, and which of them may go. Knows names, not content.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::partial::folder;
use crate::error::{Error, ErrorKind, fail};

/// The form of a date in a name.
const FORM: &[u8] = b"0000-00-00T00-00-00Z";

/// The names of a database's dated backups: `petstore-2026-11-22T06-25-40Z.db` for `petstore.db`. Sorted by name
/// they are sorted by time.
pub struct Series {
    /// What comes before the date, such as `petstore-`, and after it, such as `.db`.
    begin: OsString,
    end: OsString,
}

impl Series {
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the path does not end in a name.
    pub fn of(database: &Path) -> Result<Self, Error> {
        let Some(stem) = database.file_stem() else {
            return fail(
                ErrorKind::InvalidInput,
                format!("'{}' is not the name of a file", database.display()),
            );
        };
        let end = database.extension().map_or_else(OsString::new, |end| joined(".".as_ref(), end));
        Ok(Self { begin: joined(stem, "-".as_ref()), end })
    }

    /// The name of the backup of this date.
    pub fn name(&self, date: &str) -> OsString {
        joined(&joined(&self.begin, date.as_ref()), &self.end)
    }

    fn has(&self, name: &OsStr) -> bool {
        let date = name.as_encoded_bytes().strip_prefix(self.begin.as_encoded_bytes());
        let date = date.and_then(|rest| rest.strip_suffix(self.end.as_encoded_bytes()));
        let fits =
            |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
        date.is_some_and(|date| date.len() == FORM.len() && date.iter().zip(FORM).all(fits))
    }

    /// Removes the oldest backups beyond `keep`, and returns their paths. `newest` always stays.
    ///
    /// # Errors
    /// Fails if a file cannot be removed; the older ones are then removed.
    pub fn thin(&self, newest: &Path, keep: NonZeroUsize) -> Result<Vec<PathBuf>, Error> {
        let folder = folder(newest);
        let entries = fs::read_dir(folder)
            .map_err(|error| Error::io(format!("cannot list {}", folder.display()), error))?;
        let of_series = entries.flatten().filter(|entry| self.has(&entry.file_name()));
        let mut older: Vec<PathBuf> =
            of_series.map(|entry| entry.path()).filter(|path| path != newest).collect();
        older.sort();
        older.truncate((older.len() + 1).saturating_sub(keep.get()));
        for path in &older {
            fs::remove_file(path)
                .map_err(|error| Error::io(format!("cannot remove {}", path.display()), error))?;
        }
        Ok(older)
    }
}

fn joined(one: &OsStr, other: &OsStr) -> OsString {
    [one, other].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    const DATE: &str = "2027-01-31T18-00-00Z";

    fn series(database: &str) -> Series {
        Series::of(database.as_ref()).unwrap()
    }

    #[test]
    fn name_has_the_database_and_the_time() {
        for (database, name) in [
            ("petstore.db", "petstore-2027-01-31T18-00-00Z.db"),
            ("/srv/my pets.sqlite3", "my pets-2027-01-31T18-00-00Z.sqlite3"),
            ("pets", "pets-2027-01-31T18-00-00Z"),
            (".db", ".db-2027-01-31T18-00-00Z"),
        ] {
            let series = series(database);
            assert_eq!(series.name(DATE), name);
            assert!(series.has(&series.name(DATE)), "{database}");
        }
        assert!(Series::of("..".as_ref()).is_err());
    }

    #[test]
    fn only_its_own_names_count() {
        for name in [
            "pets-2027-01-31T18-00-00Z.db",
            "petstore-2027-01-31T18-00-00Z",
            "petstore-2027-01-31T18-00-00Z.db-wal",
            "petstore-2027-01-31T18:00:00Z.db",
            "petstore-2027-01-31T18-00-0Z.db",
            "petstore-old-2027-01-31T18-00-00Z.db",
            "petstore-.db",
            "petstore.db",
            "petstore.db.partial",
        ] {
            assert!(!series("petstore.db").has(name.as_ref()), "{name}");
        }
        assert!(!series("petstore").has("petstore-2027-01-31T18-00-00Z.db".as_ref()));
    }

    #[test]
    fn oldest_beyond_the_number_go_and_the_newest_never() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |day: usize| folder.0.join(series.name(&format!("2027-01-{day:02}T18-00-00Z")));
        let thin = |newest, keep| series.thin(&path(newest), NonZeroUsize::new(keep).unwrap()).unwrap();
        (1..=5).for_each(|day| fs::write(path(day), "").unwrap());
        assert_eq!(thin(5, 7), [""; 0].map(PathBuf::from));
        assert_eq!(thin(5, 3), [path(1), path(2)]);
        // A clock that was set back.
        assert_eq!(thin(3, 1), [path(4), path(5)]);
        assert!(path(3).exists());
    }
}
