//! A file that is not complete yet. It lies in the folder of its target, and gets its name in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as Os};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::clock::rfc3339;
use crate::error::{Error, ErrorKind, fail, words};

/// A file that only its owner may read, locked while it is written. Dropping this removes it. If the process is
/// killed, the next one with the same target removes it.
pub struct Partial {
    pub path: PathBuf,
    pub file: File,
}

impl Partial {
    /// Creates an empty file named after its target: `pets.db.partial-` and a random number.
    ///
    /// # Errors
    /// Fails if the target is not the name of a file, or its folder takes no files.
    pub fn beside(target: &Path) -> Result<Self, Error> {
        if target.as_os_str().is_empty() || target.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let line = format!("'{}' is not the name of a file", target.display());
            return fail(ErrorKind::InvalidInput, line);
        }
        remove_left(target);
        loop {
            let random = getrandom::u64()
                .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))?;
            let path = with_suffix(target, &format!("{PARTIAL}{random:016x}"));
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let file = made.map_err(|error| cannot_create(target, error))?;
            // Without the lock, another process takes the file for one that was left, and removes it.
            let _ = file.lock();
            if file.metadata().is_ok_and(|found| found.nlink() != 0) {
                return Ok(Self { path, file });
            }
        }
    }

    /// Gives the file its name, never over another file. The content was flushed before; this flushes the name.
    ///
    /// # Errors
    /// [`ErrorKind::FileExists`] if there is a file of this name.
    pub fn put(self, target: &Path) -> Result<(), Error> {
        rename_new(&self.path, target)?;
        drop(self);
        flush_folder(target)
    }

    /// Replaces the target in one step. The content was flushed before; this flushes the name.
    pub fn replace(self, target: &Path) -> Result<(), Error> {
        fs::rename(&self.path, target).map_err(|error| cannot_create(target, error))?;
        flush_folder(target)
    }

    /// Takes the place of the target, which gets the new name `kept`. Both change in one step, so no file ever has two
    /// names. A kill just before it leaves the copy as `kept`. The content was flushed before; this flushes the names.
    ///
    /// # Errors
    /// [`ErrorKind::FileExists`] if there is a file named `kept`.
    pub fn exchange(self, target: &Path, kept: &Path) -> Result<(), Error> {
        rename_new(&self.path, kept)?;
        let put = match rename(kept, target, RenameFlags::EXCHANGE) {
            Err(error) if is_unsupported(&error) => self.exchange_by_link(target, kept),
            done => done,
        };
        put.map_err(|error| {
            // The target is what it was, and this is the copy, or a second name of the target.
            let _ = fs::remove_file(kept);
            cannot_create(target, error)
        })?;
        flush_folder(target)
    }

    /// [`exchange`](Self::exchange) in steps, for a file system that cannot exchange two names.
    fn exchange_by_link(&self, target: &Path, kept: &Path) -> io::Result<()> {
        fs::rename(kept, &self.path)?;
        fs::hard_link(target, kept)?;
        fs::rename(&self.path, target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It no longer exists if it has replaced the target.
        let _ = fs::remove_file(&self.path);
    }
}

/// The suffix of a partial file, before a random number of 16 hexadecimal digits.
const PARTIAL: &str = ".partial-";

/// Removes the partial files that killed processes have left for this target. A live process holds its lock.
fn remove_left(target: &Path) {
    for (path, rest) in names_after(target, PARTIAL) {
        let is_ours = rest.len() == 16 && rest.iter().all(u8::is_ascii_hexdigit);
        // The lock is kept until the file is gone, so that its maker notices.
        if is_ours
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// The files in the target's folder whose names are the target's name, `begin`, and a rest, with that rest.
pub fn names_after(target: &Path, begin: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let begin = [target.file_name().unwrap_or_default().as_encoded_bytes(), begin.as_bytes()].concat();
    let after = |entry: fs::DirEntry| {
        let rest = entry.file_name().as_encoded_bytes().strip_prefix(&begin[..])?.to_owned();
        Some((entry.path(), rest))
    };
    fs::read_dir(folder(target)).into_iter().flatten().flatten().filter_map(after).collect()
}

/// Gives a file a new name in one step, never over another file.
///
/// # Errors
/// [`ErrorKind::FileExists`] if there is a file of this name.
pub fn rename_new(path: &Path, name: &Path) -> Result<(), Error> {
    let renamed = match rename(path, name, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(&error) => {
            fs::hard_link(path, name).and_then(|()| fs::remove_file(path))
        }
        done => done,
    };
    renamed.map_err(|error| match error.kind() {
        Os::AlreadyExists => exists(name),
        // Linux reports a file system without hard links, such as FAT, as one of these.
        Os::PermissionDenied | Os::Unsupported => {
            let line = format!("cannot create {}: its file system has no hard links", name.display());
            Error::new(ErrorKind::Io, line).caused_by(error)
        }
        _ => cannot_create(name, error),
    })
}

fn rename(path: &Path, name: &Path, how: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(CWD, path, CWD, name, how)?)
}

/// Whether a file system knows only the plain rename, as ZFS before 2.2.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), Os::InvalidInput | Os::Unsupported)
}

/// The error for a file that would have to be overwritten.
pub fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::FileExists, format!("{} already exists and is not overwritten", path.display()))
}

/// Flushes the names in the folder of a file.
pub fn flush_folder(path: &Path) -> Result<(), Error> {
    let folder = folder(path);
    let flushed = File::open(folder).and_then(|folder| folder.sync_all());
    flushed.map_err(|error| Error::io(format!("cannot flush the folder {}", folder.display()), error))
}

/// A time in UTC for the name of a file, such as `2026-11-22T06-25-40Z`. Some file systems allow no colons.
pub fn dated(unix_time: i64) -> String {
    rfc3339(unix_time).replace(':', "-")
}

/// The folder of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with a suffix added to the name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cannot_create(path: &Path, error: io::Error) -> Error {
    let folder = folder(path).display();
    let why = match error.kind() {
        Os::NotFound => format!("the folder {folder} does not exist"),
        Os::PermissionDenied => format!("this user may not write to {folder}"),
        _ => words(&error),
    };
    let kind = ErrorKind::of_io(&error);
    Error::new(kind, format!("cannot create {}: {why}", path.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    /// The content of a file.
    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn copy_takes_the_place_of_its_target_on_any_file_system() {
        for by_link in [false, true] {
            let folder = Folder::new();
            let [target, kept] = ["target", "kept"].map(|name| folder.0.join(name));
            fs::write(&target, "old").unwrap();
            let partial = Partial::beside(&target).unwrap();
            fs::write(&partial.path, "new").unwrap();
            if by_link {
                rename_new(&partial.path, &kept).unwrap();
                partial.exchange_by_link(&target, &kept).unwrap();
            } else {
                partial.exchange(&target, &kept).unwrap();
            }
            assert_eq!((text(&target), text(&kept)), ("new".to_owned(), "old".to_owned()), "{by_link}");
            assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
        }
    }

    #[test]
    fn nothing_is_renamed_over_a_file() {
        let folder = Folder::new();
        let [target, kept] = ["target", "kept"].map(|name| folder.0.join(name));
        for path in [&target, &kept] {
            fs::write(path, "mine").unwrap();
        }
        let partial = || Partial::beside(&target).unwrap();
        assert_eq!(partial().put(&target).unwrap_err().kind(), ErrorKind::FileExists);
        assert_eq!(partial().exchange(&target, &kept).unwrap_err().kind(), ErrorKind::FileExists);
        assert_eq!((text(&target), text(&kept)), ("mine".to_owned(), "mine".to_owned()));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn only_what_a_killed_process_left_is_removed() {
        let folder = Folder::new();
        let named = |rest: &str| with_suffix(&folder.database(), &format!("{PARTIAL}{rest}"));
        let (left, theirs) = (named("0123456789abcdef"), ["cafe", "of my own making"].map(named));
        theirs.iter().chain([&left]).for_each(|path| fs::write(path, "").unwrap());
        drop(Partial::beside(&folder.database()).unwrap());
        assert!(!left.exists() && theirs.iter().all(|path| path.exists()));
    }

    #[test]
    fn failures_say_what_to_look_at() {
        let at = Path::new("/backups/copy.db");
        for (error, kind, words) in [
            (Os::NotFound, ErrorKind::FileMissing, "copy.db: the folder /backups does not exist"),
            (
                Os::PermissionDenied,
                ErrorKind::PermissionDenied,
                "copy.db: this user may not write to /backups",
            ),
            (Os::StorageFull, ErrorKind::DiskFull, ""),
        ] {
            let error = cannot_create(at, error.into());
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        for name in ["", "copies/"] {
            let error = Partial::beside(Path::new(name)).err().unwrap();
            assert!(error.to_string().ends_with("is not the name of a file"), "{error}");
        }
        for (kind, expected) in
            [(Os::InvalidInput, true), (Os::Unsupported, true), (Os::AlreadyExists, false)]
        {
            assert_eq!(is_unsupported(&kind.into()), expected, "{kind}");
        }
        let folder = Folder::new();
        let error = flush_folder(&folder.0.join("missing/pets.db")).unwrap_err();
        assert!(error.to_string().contains("cannot flush the folder "), "{error}");
        let (one, other) = (folder.0.join("one"), folder.0.join("other"));
        [&one, &other].into_iter().for_each(|file| fs::write(file, "").unwrap());
        let error = rename_new(&one, &other).unwrap_err();
        assert!(error.to_string().ends_with("/other already exists and is not overwritten"), "{error}");
    }
}
