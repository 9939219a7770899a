//! The dated backups of one database in a folder, and their rotation. Knows names, not content.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use petstore_base::error::Error;
use petstore_base::files::folder_of;

/// The form of a date in a name.
const FORM: &str = "0000-00-00T00-00-00Z";

/// The names of a database's dated backups: `petstore-2026-11-22T06-25-40Z.db` for `petstore.db`. Their alphabetical
/// order is the order of their dates.
pub struct Series {
    /// The text before the date, such as `petstore-`.
    begin: String,
    /// The text after the date, such as `.db`.
    end: String,
}

impl Series {
    pub fn new(database: &Path) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let end = database
            .extension()
            .map_or_else(String::new, |end| format!(".{}", text(Some(end))));
        Self {
            begin: text(database.file_stem()) + "-",
            end,
        }
    }

    /// Returns the name of the backup with this date.
    pub fn name(&self, date: &str) -> String {
        format!("{}{date}{}", self.begin, self.end)
    }

    fn has(&self, name: &str) -> bool {
        let date = name
            .strip_prefix(&self.begin)
            .and_then(|rest| rest.strip_suffix(&self.end));
        date.is_some_and(|date| date.replace(|c: char| c.is_ascii_digit(), "0") == FORM)
    }

    /// Lists the backups in the folder of `newest` that are older than it, the oldest first. Leaves out what is no file,
    /// has a later date, or for which `is_own` is false.
    ///
    /// # Errors
    /// Fails if the folder cannot be listed.
    pub fn older(
        &self,
        newest: &Path,
        is_own: impl Fn(&Path) -> bool,
    ) -> Result<Vec<PathBuf>, Error> {
        let folder = folder_of(newest);
        let entries = fs::read_dir(folder)
            .map_err(|error| Error::io(format!("cannot list {}", folder.display()), error))?;
        let of_series = entries.flatten().filter(|entry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            is_file
                && entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| self.has(name))
        });
        let mut older: Vec<PathBuf> = of_series
            .map(|entry| entry.path())
            .filter(|path| path != newest)
            .collect();
        older.sort();
        let later = older.split_off(older.partition_point(|path| path.as_path() < newest));
        let others: Vec<PathBuf> = older.extract_if(.., |path| !is_own(path)).collect();
        for (first, why) in [
            (later.first(), "are dated later than now"),
            (others.first(), "cannot be read, or are of another database"),
        ] {
            if let Some(first) = first {
                log::warn!(
                    "backups from {} on {why}: they stay and do not count",
                    first.display()
                );
            }
        }
        Ok(older)
    }
}

/// Retains `keep` backups, among them the newest one, which is not in the list, and removes the others from the
/// beginning of the list. Returns what it removed.
///
/// # Errors
/// Fails if a file cannot be removed; the older ones are then removed.
pub fn remove_oldest(mut older: Vec<PathBuf>, keep: NonZeroUsize) -> Result<Vec<PathBuf>, Error> {
    older.truncate((older.len() + 1).saturating_sub(keep.get()));
    for path in &older {
        fs::remove_file(path)
            .map_err(|error| Error::io(format!("cannot remove {}", path.display()), error))?;
    }
    Ok(older)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;

    const DATE: &str = "2027-01-31T18-00-00Z";

    fn series(database: &str) -> Series {
        Series::new(database.as_ref())
    }

    #[test]
    fn name_has_the_database_and_the_time() {
        for (database, name) in [
            ("petstore.db", "petstore-2027-01-31T18-00-00Z.db"),
            (
                "/srv/my pets.sqlite3",
                "my pets-2027-01-31T18-00-00Z.sqlite3",
            ),
            ("pets", "pets-2027-01-31T18-00-00Z"),
            (".db", ".db-2027-01-31T18-00-00Z"),
        ] {
            let series = series(database);
            assert_eq!(series.name(DATE), name);
            assert!(series.has(&series.name(DATE)), "{database}");
        }
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
            assert!(!series("petstore.db").has(name), "{name}");
        }
        assert!(!series("petstore").has("petstore-2027-01-31T18-00-00Z.db"));
    }

    #[test]
    fn oldest_beyond_the_number_go_and_the_newest_never() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |day: usize| {
            folder
                .0
                .join(series.name(&format!("2027-01-{day:02}T18-00-00Z")))
        };
        let is_own = |path: &Path| fs::read_to_string(path).unwrap() == "own";
        let removed = |keep| {
            let older = series.older(&path(5), is_own).unwrap();
            remove_oldest(older, NonZeroUsize::new(keep).unwrap()).unwrap()
        };
        (1..=5).for_each(|day| fs::write(path(day), "own").unwrap());
        assert_eq!(removed(7), [""; 0].map(PathBuf::from));
        assert_eq!(removed(3), [path(1), path(2)]);
        (1..=2).for_each(|day| fs::write(path(day), "another").unwrap());
        assert_eq!(removed(1), [path(3), path(4)]);
        assert!([1, 2, 5].iter().all(|day| path(*day).exists()));
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |day| {
            folder
                .0
                .join(series.name(&format!("2027-01-0{day}T18-00-00Z")))
        };
        fs::create_dir(path(1)).unwrap();
        std::os::unix::fs::symlink("elsewhere", path(2)).unwrap();
        fs::write(path(3), "").unwrap();
        let older = series.older(&path(5), |path| path.is_file()).unwrap();
        assert_eq!(older, [path(3)]);
    }

    #[test]
    fn what_is_dated_later_than_now_neither_counts_nor_goes() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |year: usize| {
            folder
                .0
                .join(series.name(&format!("{year}-01-01T18-00-00Z")))
        };
        let years = [2026, 2027, 2028, 2056, 2057, 9999];
        years
            .iter()
            .for_each(|year| fs::write(path(*year), "").unwrap());
        let removed = |keep| {
            let older = series.older(&path(2028), |_| true).unwrap();
            remove_oldest(older, NonZeroUsize::new(keep).unwrap()).unwrap()
        };
        assert_eq!(removed(3), [""; 0].map(PathBuf::from));
        assert_eq!(removed(2), [path(2026)]);
        assert_eq!(removed(1), [path(2027)]);
        assert!(
            [2028, 2056, 2057, 9999]
                .iter()
                .all(|year| path(*year).exists())
        );
    }
}
