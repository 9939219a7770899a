//! A folder of static files to publish alongside the built-in site. Links are rejected, so nothing outside the folder
//! is published. The folder must not change during a deploy, because files are checked before they are read.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::model::SiteFile;
use crate::project::error::{Refusal, RefusalCode};
use crate::project::media_type;
use petstore_base::http::{gzip, tag_of};

/// The largest file, in bytes. The tests of attacks use responses of this size.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// The most bytes of all files together.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The only hidden folder that is published (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// One file to publish, checked but not read.
#[derive(Debug)]
pub struct StaticFile {
    /// The path in requests, without percent-encoding, such as `/guide/first.html`.
    pub path: String,
    /// The path on disk.
    place: PathBuf,
}

/// Lists the files of a folder to publish, ordered by their paths. Hidden files and folders are omitted.
///
/// # Errors
/// [`RefusalCode::INVALID_FOLDER`], with a message that names the file that cannot be published.
pub fn list(root: &Path, is_built_in: fn(&str) -> bool) -> Result<Vec<StaticFile>, Refusal> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut left = vec![(root.to_owned(), String::new())];
    while let Some((place, parent)) = left.pop() {
        let failed = |error| unreadable(&place, &error);
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let entry_name = entry.file_name();
            if entry_name.as_encoded_bytes().starts_with(b".") && entry_name != WELL_KNOWN {
                continue;
            }
            let place = entry.path();
            let path = format!("{parent}/{}", entry_name.to_string_lossy());
            check_name(&path, entry_name.to_str(), is_built_in)?;
            // This does not follow links.
            let found = entry
                .metadata()
                .map_err(|error| unreadable(&place, &error))?;
            if found.is_dir() {
                left.push((place, path));
                continue;
            }
            let shown = place.display();
            if !found.is_file() {
                return invalid(format!(
                    "{shown} is a link or not a file; put the file itself there"
                ));
            }
            if found.len() > MAX_FILE_BYTES {
                return invalid(format!("{shown} has more than {MAX_FILE_BYTES} bytes"));
            }
            bytes += found.len();
            files.push(StaticFile { path, place });
        }
    }
    if bytes > MAX_BYTES {
        return invalid(format!(
            "{} has more than {MAX_BYTES} bytes",
            root.display()
        ));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

impl StaticFile {
    /// Reads the file and compresses it.
    ///
    /// # Errors
    /// [`RefusalCode::INVALID_FOLDER`] if it cannot be read.
    pub fn read(&self) -> Result<SiteFile, Refusal> {
        let content = fs::read(&self.place).map_err(|error| unreadable(&self.place, &error))?;
        // Saving less than a tenth is not worth the client's time to decompress.
        let gzip = gzip(&content).filter(|packed| packed.len() < content.len() / 10 * 9);
        let (path, content_type) = (self.path.clone(), media_type::of(&self.path).to_owned());
        Ok(SiteFile {
            path,
            content_type,
            tag: tag_of(&content),
            content,
            gzip,
        })
    }
}

/// Rejects names that a request cannot have, and names of the built-in site. `name` is `None` if it is not UTF-8.
fn check_name(
    path: &str,
    name: Option<&str>,
    is_built_in: fn(&str) -> bool,
) -> Result<(), Refusal> {
    if name.is_none_or(|name| name.contains(|c: char| c.is_control() || c == '\\')) {
        let shown = path.escape_debug();
        return invalid(format!(
            "'{shown}' is not UTF-8, or has a control character or a backslash"
        ));
    }
    if is_built_in(path) {
        return invalid(format!(
            "{path} belongs to the built-in site; give it another name"
        ));
    }
    Ok(())
}

fn unreadable(place: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        RefusalCode::INVALID_FOLDER,
        format!("{} cannot be read: {error}", place.display()),
    )
}

fn invalid<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::new(RefusalCode::INVALID_FOLDER, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder as TestFolder;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn is_built_in(path: &str) -> bool {
        ["/docs", "/healthz", "/v1"].contains(&path)
    }

    fn write(root: &TestFolder, path: &str, content: &[u8]) {
        let place = root.0.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    #[test]
    fn files_are_listed_and_read() {
        let root = TestFolder::new();
        for path in ["guide/index.html", "a b.css", ".well-known/security.txt"] {
            write(&root, path, b"x");
        }
        for path in [".git/config", "guide/.DS_Store"] {
            write(&root, path, b"x");
        }
        let files = list(&root.0, is_built_in).unwrap();
        let found: Vec<_> = files.iter().map(|file| &file.path[..]).collect();
        assert_eq!(
            found,
            ["/.well-known/security.txt", "/a b.css", "/guide/index.html"]
        );
        assert_eq!(files[2].read().unwrap().content, b"x");
    }

    #[test]
    fn what_cannot_be_published_is_named() {
        let refused = |prepare: fn(&TestFolder)| {
            let root = TestFolder::new();
            prepare(&root);
            list(&root.0, is_built_in).unwrap_err().message
        };
        assert!(
            refused(|root| write(root, "docs/x.html", b""))
                .contains("/docs belongs to the built-in site")
        );
        assert!(refused(|root| write(root, "healthz", b"")).contains("/healthz belongs"));
        assert!(refused(|root| write(root, "v1/pets", b"")).contains("/v1 belongs"));
        assert!(
            refused(|root| symlink("/etc/hostname", root.0.join("x")).unwrap())
                .contains("/x is a link")
        );
        assert!(
            refused(|root| symlink("..", root.0.join("up")).unwrap()).contains("/up is a link")
        );
        let link = refused(|root| symlink("nowhere", root.0.join("x")).unwrap());
        assert!(
            link.contains("/x is a link") && !link.starts_with("/x"),
            "the path on disk: {link}"
        );
        assert!(
            refused(|root| drop(UnixListener::bind(root.0.join("x")).unwrap()))
                .contains("/x is a link or not")
        );
        assert!(
            refused(|root| write(root, "a\u{1b}[31m.txt", b""))
                .contains("'/a\\u{1b}[31m.txt' is not UTF-8, or has a control")
        );
        assert!(refused(|root| write(root, "\\evil.example", b"")).contains("backslash"));
        assert!(
            refused(|root| write(root, "big.bin", &vec![0; MAX_FILE_BYTES as usize + 1]))
                .contains("/big.bin has more")
        );
        let no_folder = |path| list(Path::new(path), is_built_in).unwrap_err().message;
        assert!(no_folder("/nowhere").contains("/nowhere cannot be read"));
        assert!(no_folder("/dev/null").contains("Not a directory"));
    }

    #[test]
    fn file_that_is_gone_is_named() {
        let root = TestFolder::new();
        write(&root, "a/b.txt", b"x");
        let files = list(&root.0, is_built_in).unwrap();
        fs::remove_file(root.0.join("a/b.txt")).unwrap();
        assert!(
            files[0]
                .read()
                .unwrap_err()
                .message
                .contains("/a/b.txt cannot be read")
        );
    }

    #[test]
    fn sizes_may_reach_their_bounds() {
        // Sparse files take no disk space.
        let sized = |root: &TestFolder, path: &str, length| {
            write(root, path, b"");
            fs::OpenOptions::new()
                .write(true)
                .open(root.0.join(path))
                .unwrap()
                .set_len(length)
                .unwrap();
        };
        let root = TestFolder::new();
        for number in 0..MAX_BYTES / MAX_FILE_BYTES {
            sized(&root, &format!("{number}.bin"), MAX_FILE_BYTES);
        }
        list(&root.0, is_built_in).unwrap();
        write(&root, "one.txt", b"x");
        let said = list(&root.0, is_built_in).unwrap_err().message;
        assert!(said.ends_with("has more than 67108864 bytes"), "{said}");
    }
}
