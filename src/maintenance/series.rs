//! The dated backups of one database in a folder, and which of them may go. Knows names, not content.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind as Os;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::BESIDE;
use super::partial::{dated, with_suffix};
use crate::error::{Error, ErrorKind, fail};

/// The form of a date in a name.
const FORM: &[u8] = b"0000-00-00T00-00-00Z";
/// In seconds.
const DAY: i64 = 86_400;

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

    /// The name of the backup of this Unix time, in seconds.
    pub fn name(&self, unix_time: i64) -> OsString {
        joined(&joined(&self.begin, dated(unix_time).as_ref()), &self.end)
    }

    /// The name for the last copy that was not sound, such as `petstore-unsound.db`. It is none of the series.
    pub fn unsound(&self) -> OsString {
        joined(&joined(&self.begin, "unsound".as_ref()), &self.end)
    }

    fn has(&self, name: &OsStr) -> bool {
        let date = name.as_encoded_bytes().strip_prefix(self.begin.as_encoded_bytes());
        let date = date.and_then(|rest| rest.strip_suffix(self.end.as_encoded_bytes()));
        let fits =
            |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
        date.is_some_and(|date| date.len() == FORM.len() && date.iter().zip(FORM).all(fits))
    }

    /// Removes the oldest backups beyond `keep`, and returns their paths. `newest`, which was made at `now`, always
    /// stays. Only files count, not links or folders, nor a file that is used as a database, so that it has a log.
    ///
    /// # Errors
    /// Fails if a file cannot be removed; the older ones are then removed.
    pub fn thin(&self, newest: &Path, now: i64, keep: NonZeroUsize) -> Result<Vec<PathBuf>, Error> {
        let folder = newest.parent().unwrap_or(Path::new("."));
        let cannot = |what: String| move |error| Error::io(what, error);
        let entries = fs::read_dir(folder).map_err(cannot(format!("cannot list {}", folder.display())))?;
        let is_used = |path: &Path| BESIDE.iter().any(|suffix| with_suffix(path, suffix).exists());
        let is_own = |entry: &fs::DirEntry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            self.has(&entry.file_name()) && is_file && !is_used(&entry.path())
        };
        let mut paths: Vec<PathBuf> = entries.flatten().filter(is_own).map(|entry| entry.path()).collect();
        // A clock that was wrong has dated what lies in the future. It goes first, or it would stay for ever.
        let tomorrow = folder.join(self.name(now + DAY));
        paths.sort_by(|one, other| (*one <= tomorrow, one).cmp(&(*other <= tomorrow, other)));
        paths.truncate(paths.len().saturating_sub(keep.get()));
        paths.retain(|path| path != newest);
        for path in &paths {
            match fs::remove_file(path) {
                // Another backup has removed it.
                Err(error) if error.kind() != Os::NotFound => {
                    return Err(cannot(format!("cannot remove {}", path.display()))(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(paths)
    }
}

fn joined(one: &OsStr, other: &OsStr) -> OsString {
    [one, other].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

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
            assert_eq!(series.name(1_801_418_400), name);
            assert!(series.has(&series.name(0)) && !series.has(&series.unsound()), "{database}");
        }
        assert!(Series::of("..".as_ref()).is_err());
    }

    #[test]
    fn only_its_own_names_count() {
        for name in [
            "pets-2027-01-31T18-00-00Z.db",
            "petstore-2027-01-31T18-00-00Z",
            "petstore-2027-01-31T18-00-00Z.db-wal",
            "petstore-2027-01-31T18-00-00Z.db.partial-0123456789abcdef",
            "petstore-2027-01-31T18:00:00Z.db",
            "petstore-2027-01-31T18-00-0Z.db",
            "petstore-old-2027-01-31T18-00-00Z.db",
            "petstore-.db",
            "petstore.db",
        ] {
            assert!(!series("petstore.db").has(name.as_ref()), "{name}");
        }
        assert!(!series("petstore").has("petstore-2027-01-31T18-00-00Z.db".as_ref()));
    }

    #[test]
    fn oldest_beyond_the_number_go_and_the_newest_never() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |day: i64| folder.0.join(series.name(day * DAY));
        let days = || (1..=9).filter(|day| path(*day).exists()).collect::<Vec<_>>();
        let thin = |day: i64, keep| {
            fs::write(path(day), "").unwrap();
            series.thin(&path(day), day * DAY, NonZeroUsize::new(keep).unwrap()).unwrap()
        };
        (1..=4).for_each(|day| fs::write(path(day), "").unwrap());
        fs::create_dir(path(9)).unwrap();
        // Somebody serves one of them.
        fs::write(path(0), "").unwrap();
        fs::write(with_suffix(&path(0), "-wal"), "").unwrap();
        assert_eq!(thin(5, 7), [""; 0].map(PathBuf::from));
        assert_eq!(thin(5, 3), [path(1), path(2)]);
        assert_eq!(days(), [3, 4, 5, 9]);
        // A clock that was set back: what lies in the future goes first, and what was made now stays.
        assert_eq!(thin(2, 3), [path(4)]);
        assert_eq!(thin(3, 2), [path(5)]);
        assert_eq!(days(), [2, 3, 9]);
        // Made at the same time as others, which are dated a little later.
        assert_eq!(thin(2, 1), [""; 0].map(PathBuf::from));
        assert_eq!(thin(3, 1), [path(2)]);
        assert!(path(0).exists());
    }
}
