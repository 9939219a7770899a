//! A folder of static files to publish alongside the built-in site. No link is followed, so nothing outside the folder
//! is published.

use std::fs::{self, DirEntry, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::media_type;
use super::refusal::{Refusal, RefusalCode};
use crate::api;

/// The most static files of a deploy, and the most folders.
const MAX_FILES: usize = 2000;
/// The largest file, in bytes: the tests attack the service with responses of this size.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// The most bytes of all files together.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The only hidden folder that is published (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// The files to publish, checked but not read.
#[derive(Debug, Default)]
pub struct Folder {
    /// Ordered by their paths.
    pub files: Vec<StaticFile>,
    /// How many hidden files and folders are left out.
    pub hidden: usize,
}

/// One file of the folder.
#[derive(Debug)]
pub struct StaticFile {
    /// The path in requests, without percent-encoding, such as `/guide/first.html`.
    pub path: String,
    /// The path on disk, without links.
    place: PathBuf,
    /// The size when it was listed.
    bytes: u64,
}

impl Folder {
    /// Lists a folder.
    ///
    /// # Errors
    /// [`RefusalCode::InvalidFolder`], with a message that names the file that cannot be published.
    pub fn list(root: &Path) -> Result<Self, Refusal> {
        let name = root.display();
        let root =
            root.canonicalize().or_else(|error| invalid(format!("{name} cannot be opened: {error}")))?;
        let (mut folder, mut folders) = (Self::default(), 0);
        let mut left = vec![(root, String::new())];
        while let Some((place, parent)) = left.pop() {
            folders += 1;
            let shown = if parent.is_empty() { "the folder" } else { &parent };
            for entry in fs::read_dir(&place).map_err(|error| unreadable(shown, &error))? {
                let entry = entry.map_err(|error| unreadable(shown, &error))?;
                let entry_name = entry.file_name();
                if entry_name.as_encoded_bytes().starts_with(b".") && entry_name != WELL_KNOWN {
                    folder.hidden += 1;
                    continue;
                }
                let path = format!("{parent}/{}", entry_name.to_string_lossy());
                check_name(&path, entry_name.to_str())?;
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.push((entry.path(), path));
                } else {
                    folder.files.push(StaticFile::new(path, &entry)?);
                }
                if folder.files.len() > MAX_FILES || folders + left.len() > MAX_FILES {
                    return invalid(format!("{name} has more than {MAX_FILES} files or folders"));
                }
            }
        }
        if folder.files.iter().map(|file| file.bytes).sum::<u64>() > MAX_BYTES {
            return invalid(format!("{name} has more than {MAX_BYTES} bytes"));
        }
        folder.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(folder)
    }
}

impl StaticFile {
    /// Checks an entry of a folder.
    fn new(path: String, entry: &DirEntry) -> Result<Self, Refusal> {
        // For a link, the metadata of the link itself.
        let found = entry.metadata().map_err(|error| unreadable(&path, &error))?;
        if found.is_symlink() {
            return Err(link(&path));
        }
        if !found.is_file() {
            return invalid(format!("{path} is not a file"));
        }
        check_size(&path, found.len())?;
        Ok(Self { path, place: entry.path(), bytes: found.len() })
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`RefusalCode::InvalidFolder`] if it cannot be read, has grown too large, or is a file no more.
    pub fn read(&self) -> Result<Vec<u8>, Refusal> {
        let failed = |error: io::Error| unreadable(&self.path, &error);
        // Since it was listed, a folder above it may have become a link.
        if self.place.canonicalize().map_err(failed)? != self.place {
            return Err(link(&self.path));
        }
        // NONBLOCK: a pipe without a writer opens too, instead of waiting for one.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.place).map_err(failed)?;
        if !file.metadata().is_ok_and(|file| file.is_file()) {
            return invalid(format!("{} is not a file", self.path));
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
        check_size(&self.path, content.len() as u64)?;
        Ok(content)
    }

    /// The media type by the extension of its name.
    pub fn content_type(&self) -> String {
        media_type::of(&self.path).to_owned()
    }
}

/// Refuses names that a request cannot have, and names of the built-in site. `name` is `None` if it is not UTF-8.
fn check_name(path: &str, name: Option<&str>) -> Result<(), Refusal> {
    let shown = path.escape_debug();
    match name {
        None => invalid(format!("the name '{shown}' is not UTF-8")),
        Some(name) if name.contains(|c: char| c.is_control() || c == '\\') => {
            invalid(format!("the name '{shown}' has a control character or a backslash"))
        }
        Some(_) if api::is_built_in(path) => {
            invalid(format!("{path} belongs to the built-in site; give it another name"))
        }
        Some(_) => Ok(()),
    }
}

fn check_size(path: &str, bytes: u64) -> Result<(), Refusal> {
    if bytes > MAX_FILE_BYTES {
        return invalid(format!("{path} has more than {MAX_FILE_BYTES} bytes"));
    }
    Ok(())
}

fn unreadable(path: &str, error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::InvalidFolder, format!("{path} cannot be read: {error}"))
}

fn link(path: &str) -> Refusal {
    let message = format!("{path} is a link, and links are not followed; put the file itself there");
    Refusal::new(RefusalCode::InvalidFolder, message)
}

fn invalid<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::new(RefusalCode::InvalidFolder, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder as TestFolder;
    use std::os::unix::fs::symlink;

    fn write(root: &TestFolder, path: &str, content: &[u8]) {
        let place = root.0.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    #[test]
    fn files_are_listed_with_their_types() {
        let root = TestFolder::new();
        for path in ["guide/index.html", "a b.css", "logo.svg", "x.unknown", ".well-known/security.txt"] {
            write(&root, path, b"x");
        }
        for path in [".git/config", "guide/.DS_Store"] {
            write(&root, path, b"x");
        }
        let folder = Folder::list(&root.0).unwrap();
        let found: Vec<_> = folder.files.iter().map(|file| (&file.path[..], file.content_type())).collect();
        let found: Vec<_> = found.iter().map(|(path, of)| (*path, &of[..])).collect();
        assert_eq!(
            found,
            [
                ("/.well-known/security.txt", "text/plain; charset=utf-8"),
                ("/a b.css", "text/css; charset=utf-8"),
                ("/guide/index.html", "text/html; charset=utf-8"),
                ("/logo.svg", "image/svg+xml"),
                ("/x.unknown", "application/octet-stream"),
            ]
        );
        assert_eq!(folder.hidden, 2);
        assert_eq!(folder.files[3].read().unwrap(), b"x");
    }

    #[test]
    fn what_cannot_be_published_is_named() {
        let refused = |prepare: fn(&TestFolder)| {
            let root = TestFolder::new();
            prepare(&root);
            Folder::list(&root.0).unwrap_err().message
        };
        assert!(
            refused(|root| write(root, "docs/x.html", b"")).contains("/docs belongs to the built-in site")
        );
        assert!(refused(|root| write(root, "healthz", b"")).contains("/healthz belongs"));
        assert!(refused(|root| write(root, "v1/pets", b"")).contains("/v1 belongs"));
        assert!(refused(|root| symlink("/etc/hostname", root.0.join("x")).unwrap()).contains("/x is a link"));
        assert!(refused(|root| symlink("..", root.0.join("up")).unwrap()).contains("/up is a link"));
        assert!(refused(|root| symlink("nowhere", root.0.join("x")).unwrap()).contains("/x is a link"));
        assert!(
            refused(|root| write(root, "a\u{1b}[31m.txt", b"")).contains("'/a\\u{1b}[31m.txt' has a control")
        );
        assert!(refused(|root| write(root, "\\evil.example", b"")).contains("backslash"));
        assert!(
            refused(|root| write(root, "big.bin", &vec![0; MAX_FILE_BYTES as usize + 1]))
                .contains("/big.bin has more")
        );
        let no_folder = |path| Folder::list(Path::new(path)).unwrap_err().message;
        assert!(no_folder("/nowhere").contains("/nowhere cannot be opened"));
        assert!(no_folder("/dev/null").contains("Not a directory"));
    }

    #[test]
    fn what_becomes_a_link_or_a_pipe_meanwhile_is_not_read() {
        let root = TestFolder::new();
        write(&root, "a/b.txt", b"x");
        let folder = Folder::list(&root.0).unwrap();
        let refused = || folder.files[0].read().unwrap_err().message;
        fs::remove_file(root.0.join("a/b.txt")).unwrap();
        assert!(refused().contains("/a/b.txt cannot be read"));
        symlink("/etc/hostname", root.0.join("a/b.txt")).unwrap();
        assert!(refused().contains("/a/b.txt is a link"));
        fs::remove_file(root.0.join("a/b.txt")).unwrap();
        let (pipe, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, root.0.join("a/b.txt"), pipe, mode, 0).unwrap();
        assert!(refused().contains("/a/b.txt is not a file"));
        fs::rename(root.0.join("a"), root.0.join("c")).unwrap();
        symlink("c", root.0.join("a")).unwrap();
        assert!(refused().contains("is a link"));
    }

    #[test]
    fn file_that_grows_meanwhile_is_refused() {
        let root = TestFolder::new();
        write(&root, "a.txt", b"x");
        let folder = Folder::list(&root.0).unwrap();
        write(&root, "a.txt", &vec![0; MAX_FILE_BYTES as usize + 1]);
        assert!(folder.files[0].read().unwrap_err().message.contains("/a.txt has more"));
    }
}
