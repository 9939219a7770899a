//! A file that is not whole yet. It stands beside its later place, so that it comes there in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file for its owner only, locked while it is made. It is removed when this is dropped. A killed process leaves
/// it, and the next one with the same target removes it.
pub struct Partial {
    path: PathBuf,
    pub file: File,
}

impl Partial {
    /// Makes an empty one, named after its later place: `pets.db.partial-` and a random number.
    ///
    /// # Errors
    /// One plain line.
    pub fn beside(target: &Path) -> Result<Self, String> {
        if target.as_os_str().is_empty() || target.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(format!("'{}' is not the name of a file", target.display()));
        }
        remove_left(target);
        let random = getrandom::u64().map_err(|error| format!("cannot get random bits: {error}"))?;
        let path = with_suffix(target, &format!("{PARTIAL}{random:016x}"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(|error| cannot_make(target, &error))?;
        // Without it, another one would remove the file, and this one would say that it cannot be put in place.
        let _ = file.lock();
        Ok(Self { path, file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, unless there is such a file. It was flushed before; the name is flushed here.
    ///
    /// # Errors
    /// One plain line.
    pub fn put(self, target: &Path) -> Result<(), String> {
        link(&self.path, target)?;
        drop(self);
        flush_folder(target)
    }

    /// Puts it in the place of a file, in one step. It was flushed before; the name is flushed here.
    ///
    /// # Errors
    /// One plain line.
    pub fn replace(self, target: &Path) -> Result<(), String> {
        fs::rename(&self.path, target).map_err(|error| cannot_make(target, &error))?;
        flush_folder(target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Not there any more where it has replaced a file.
        let _ = fs::remove_file(&self.path);
    }
}

/// What the name of a file goes on with, before a random number of 16 digits.
const PARTIAL: &str = ".partial-";

/// Removes what killed processes have left of files with this target. Who is still at work has the lock.
fn remove_left(target: &Path) {
    for (path, rest) in names_after(target, PARTIAL) {
        let is_ours = rest.len() == 16 && rest.iter().all(u8::is_ascii_hexdigit);
        if is_ours && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The files beside another whose names go on with `begin`, and how these go on then.
pub fn names_after(target: &Path, begin: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let begin = [target.file_name().unwrap_or_default().as_encoded_bytes(), begin.as_bytes()].concat();
    let mut found = Vec::new();
    if let Ok(entries) = fs::read_dir(folder(target)) {
        for entry in entries.flatten() {
            if let Some(rest) = entry.file_name().as_encoded_bytes().strip_prefix(&begin[..]) {
                found.push((entry.path(), rest.to_owned()));
            }
        }
    }
    found
}

/// Gives a file a second name, which must be new.
///
/// # Errors
/// One plain line.
pub fn link(path: &Path, name: &Path) -> Result<(), String> {
    fs::hard_link(path, name).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(name),
        // What Linux says of a file system that has no links, such as FAT.
        ErrorKind::PermissionDenied | ErrorKind::Unsupported => {
            format!(
                "cannot make {}: its file system has no hard links; choose a folder on another",
                name.display()
            )
        }
        _ => cannot_make(name, &error),
    })
}

/// What is said of a file that would have to be written over.
pub fn exists(path: &Path) -> String {
    format!("{} is there already, and is not written over; choose another name", path.display())
}

/// Flushes the names in the folder of a file.
///
/// # Errors
/// One plain line.
pub fn flush_folder(path: &Path) -> Result<(), String> {
    let folder = folder(path);
    let flushed = File::open(folder).and_then(|folder| folder.sync_all());
    flushed.map_err(|error| format!("cannot flush the folder {}: {error}", folder.display()))
}

/// The folder of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of a file whose name goes on.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cannot_make(path: &Path, error: &io::Error) -> String {
    let (name, folder) = (path.display(), folder(path).display());
    match error.kind() {
        ErrorKind::NotFound => format!("cannot make {name}: there is no folder {folder}"),
        ErrorKind::NotADirectory => format!("cannot make {name}: {folder} is not a folder"),
        ErrorKind::PermissionDenied => format!("cannot make {name}: this user may not write to {folder}"),
        ErrorKind::ReadOnlyFilesystem => format!("cannot make {name}: {folder} can only be read"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!("cannot make {name}: the disk is full"),
        ErrorKind::InvalidFilename => format!("cannot make {name}: the name is too long"),
        _ => format!("cannot make {name}: {error}"),
    }
}
