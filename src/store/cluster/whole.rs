//! A whole database as a file, and the requests to the hosts of one that is not.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A database in one file of this machine: the file itself, or a temporary copy of a cluster's, deleted on drop.
pub struct Whole {
    path: PathBuf,
    /// The folder that is deleted on drop.
    folder: Option<PathBuf>,
}

impl Whole {
    pub(super) fn of_file(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            folder: None,
        }
    }
}

#[cfg(feature = "cluster")]
impl Whole {
    pub(super) fn in_folder(folder: PathBuf, name: &str) -> Self {
        Self {
            path: folder.join(name),
            folder: Some(folder),
        }
    }
}

impl Deref for Whole {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
