//! The dated backups of one database in a folder, and which of them may go. Knows names, not content.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::base::error::Error;
use crate::base::files::folder_of;

/// The form of a date in a name.
const FORM: &[u8] = b"0000-00-00T00-00-00Z";

/// The names of a database's dated backups: `petstore-2026-11-22T06-25-40Z.db` for `petstore.db`. Sorted by name
/// they are sorted by time.
pub struct Series {
    /// What comes before the date, such as `petstore-`, and after it, such as `.db`.
    begin: String,
    end: String,
}

impl Series {
    pub fn of(database: &Path) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let end = database.extension().map_or_else(String::new, |end| format!(".{}", text(Some(end))));
        Self { begin: text(database.file_stem()) + "-", end }
    }

    /// The name of the backup of this date.
    pub fn name(&self, date: &str) -> String {
        format!("{}{date}{}", self.begin, self.end)
    }

    fn has(&self, name: &str) -> bool {
        let date = name.strip_prefix(&self.begin).and_then(|rest| rest.strip_suffix(&self.end));
        let fits =
            |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
        date.is_some_and(|date| date.len() == FORM.len() && date.bytes().zip(FORM).all(fits))
    }

    /// Removes the oldest backups beyond `keep`. `newest`, which was made now, always stays, and so does the newest of each
    /// other database, as `database_of` tells them. Whatever is dated later than now stays too, and does not count. Returns
    /// the paths of the removed ones, and of those that stay as the newest of another database.
    ///
    /// # Errors
    /// Fails if a file cannot be removed; the older ones are then removed.
    pub fn thin(
        &self,
        newest: &Path,
        keep: NonZeroUsize,
        database_of: impl Fn(&Path) -> Option<String>,
    ) -> Result<[Vec<PathBuf>; 2], Error> {
        let folder = folder_of(newest);
        let entries = fs::read_dir(folder)
            .map_err(|error| Error::io(format!("cannot list {}", folder.display()), error))?;
        let of_series =
            entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(|name| self.has(name)));
        let mut older: Vec<PathBuf> =
            of_series.map(|entry| entry.path()).filter(|path| path != newest).collect();
        older.sort();
        let later = older.split_off(older.partition_point(|path| path.as_path() < newest));
        if let Some(first) = later.first() {
            log::warn!(
                "backups from {} on are dated later than now: they stay and do not count",
                first.display()
            );
        }
        let mut known = vec![None, database_of(newest)];
        let mut others = Vec::new();
        for path in older.iter().rev() {
            let database = database_of(path);
            if !known.contains(&database) {
                known.push(database);
                others.push(path.clone());
            }
        }
        older.truncate((older.len() + 1).saturating_sub(keep.get()));
        let [spared, removed]: [Vec<_>; 2] = older.into_iter().partition(|path| others.contains(path)).into();
        for path in &removed {
            fs::remove_file(path)
                .map_err(|error| Error::io(format!("cannot remove {}", path.display()), error))?;
        }
        Ok([removed, spared])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    const DATE: &str = "2027-01-31T18-00-00Z";

    fn series(database: &str) -> Series {
        Series::of(database.as_ref())
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
        let path = |day: usize| folder.0.join(series.name(&format!("2027-01-{day:02}T18-00-00Z")));
        let database_of = |path: &Path| Some(fs::read_to_string(path).unwrap());
        let thin =
            |newest, keep| series.thin(&path(newest), NonZeroUsize::new(keep).unwrap(), database_of).unwrap();
        (1..=5).for_each(|day| fs::write(path(day), "").unwrap());
        let none = Vec::new;
        assert_eq!(thin(5, 7), [none(), none()]);
        assert_eq!(thin(5, 3), [vec![path(1), path(2)], none()]);
        (1..=2).for_each(|day| fs::write(path(day), "another").unwrap());
        assert_eq!(thin(5, 1), [vec![path(1), path(3), path(4)], vec![path(2)]]);
    }

    #[test]
    fn what_is_dated_later_than_now_neither_counts_nor_goes() {
        let folder = Folder::new();
        let series = series("petstore.db");
        let path = |year: usize| folder.0.join(series.name(&format!("{year}-01-01T18-00-00Z")));
        let years = [2026, 2027, 2028, 2056, 2057, 9999];
        years.iter().for_each(|year| fs::write(path(*year), "").unwrap());
        let thin = |keep| series.thin(&path(2028), NonZeroUsize::new(keep).unwrap(), |_| None).unwrap();
        assert_eq!(thin(3), [vec![], vec![]] as [Vec<PathBuf>; 2]);
        assert_eq!(thin(2), [vec![path(2026)], vec![]]);
        assert_eq!(thin(1), [vec![path(2027)], vec![]]);
        assert!([2028, 2056, 2057, 9999].iter().all(|year| path(*year).exists()));
    }
}
