//! Saves a database whose file was deleted or replaced, as only open connections have it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::open_file::FileId;
use super::{Cause, StoreError, Writer};
use petstore_base::clock::{rfc3339, unix_time};
use petstore_base::error::Error;
use petstore_base::files::{create_private, folder_of};

/// The beginning of the last extension of a saved database.
const BEGIN: &str = "rescued-";
/// The time between two attempts.
const AGAIN: Duration = Duration::from_secs(60);

/// The outcome of the last attempt, if there was one: success, or the time of the failure.
pub type Rescue = Option<Result<(), Instant>>;

/// The databases that services have saved next to a path.
pub fn saved_next_to(path: &Path) -> Vec<PathBuf> {
    let begin = path.with_added_extension(BEGIN);
    let begin = begin.file_name().unwrap_or_default().as_encoded_bytes();
    let files = fs::read_dir(folder_of(path))
        .into_iter()
        .flatten()
        .flatten();
    files
        .filter(|file| file.file_name().as_encoded_bytes().starts_with(begin))
        .map(|file| file.path())
        .collect()
}

impl Writer {
    /// Leaves it to another connection of this process to save the database.
    pub fn never_rescue(&mut self) {
        self.rescue = Some(Ok(()));
    }

    /// Copies a database whose file was deleted to a new name next to the old one. Returns false as long as only open
    /// connections have it; then logs how to copy it out of this process. Call this again, and as the writer closes.
    pub fn rescue(&mut self) -> bool {
        let Err(StoreError::Unavailable(Cause::Moved, _)) = self.reader.watch.check_now() else {
            return true;
        };
        self.undo();
        // The log stays as it is, and may be needed.
        self.keep_log();
        match self.rescue {
            Some(Ok(())) => return true,
            Some(Err(at)) if at.elapsed() < AGAIN => return false,
            None if !self.reader.watch.is_deleted() => return true,
            _ => {}
        }
        let path = self.reader.watch.path();
        let name = path.display();
        let time = rfc3339(unix_time()).replace(':', "-");
        let target = path.with_added_extension(format!("{BEGIN}{time}"));
        let saved = self.save(&target);
        if let Err(error) = &saved {
            // This folder may end with the process, as a private one of systemd does.
            let temporary = std::env::temp_dir().join(target.file_name().unwrap_or_default());
            let other_copy = if self.rescue.is_none() && self.save(&temporary).is_ok() {
                format!(" A copy is in {}.", temporary.display())
            } else {
                String::new()
            };
            log::error!(
                "{name} or its log is gone, and cannot be saved in its folder: {error}.{other_copy} This process has what it held, \
                 and tries again: make room, or run this in another folder, for petstore restore rescued.db: {}",
                self.lines_to_copy()
            );
        } else {
            log::error!(
                "{name} or its log is gone; all that it held is in {}",
                target.display()
            );
        }
        let is_saved = saved.is_ok();
        self.rescue = Some(saved.map_err(|_| Instant::now()));
        is_saved
    }

    /// The command that copies the files that this process has open.
    fn lines_to_copy(&self) -> String {
        let folder = format!("/proc/{}/fd", std::process::id());
        let open = |id| {
            let files = fs::read_dir(&folder).ok()?.flatten();
            let mut paths = files.map(|file| file.path());
            paths.find(|file: &PathBuf| FileId::from_path(file).is_ok_and(|it| it == id))
        };
        let files = self.reader.watch.ids().map(open);
        let lines = files.zip(["rescued.db", "rescued.db-wal"]);
        let lines = lines.filter_map(|(file, name)| Some(format!("cp {} {name}", file?.display())));
        lines.collect::<Vec<_>>().join(" && ")
    }

    /// Copies page by page: unlike `VACUUM INTO`, this takes any name, and needs no collation of other programs.
    fn save(&self, target: &Path) -> Result<(), Error> {
        let file = create_private(target)
            .map_err(|error| Error::of_file("cannot create it", target, error))?;
        let copied = self.reader.copy(&file, target, target, &|| false);
        copied.inspect_err(|_| drop(fs::remove_file(target)))
    }
}
