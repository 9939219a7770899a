//! A folder of static files that is to be published beside the built-in site.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::api;

/// The most static files of a deploy.
const MAX_FILES: usize = 2000;
/// The largest of them, in bytes: responses of this size have been tried under attack.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// All of them together, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 32;
/// The one hidden folder that is published (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// What is to be published, checked but not read.
#[derive(Debug, Default)]
pub struct Folder {
    /// By their paths.
    pub files: Vec<Found>,
    /// How many hidden files and folders are left out.
    pub hidden: usize,
}

/// One file of it.
#[derive(Debug)]
pub struct Found {
    /// As in a request, without percent-encoding, such as `/guide/first.html`.
    pub path: String,
    /// Where it lies, without links.
    place: PathBuf,
}

impl Folder {
    /// Looks through a folder.
    ///
    /// # Errors
    /// One plain sentence that names the file that cannot be published, and says why.
    pub fn look_through(root: &Path) -> Result<Self, String> {
        let real = fs::canonicalize(root)
            .map_err(|_| format!("there is no folder {}, or this user may not read it", root.display()))?;
        if !real.is_dir() {
            return Err(format!("{} is no folder", root.display()));
        }
        let (mut folder, mut bytes) = (Self::default(), 0);
        let mut left = vec![(String::new(), real.clone())];
        while let Some((path, place)) = left.pop() {
            if path.matches('/').count() > MAX_DEPTH {
                return Err(format!(
                    "{path} lies deeper than {MAX_DEPTH} folders; does a link lead in a circle?"
                ));
            }
            let unreadable = |_| format!("the folder {} cannot be read by this user", place.display());
            for entry in fs::read_dir(&place).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|name| !name.chars().any(char::is_control)) else {
                    return Err(format!("the name of {} is not UTF-8 text", entry.path().display()));
                };
                if name.starts_with('.') && name != WELL_KNOWN {
                    folder.hidden += 1;
                    continue;
                }
                let path = format!("{path}/{name}");
                if api::is_built_in(&path) {
                    return Err(format!("{path} belongs to the built-in site; give it another name"));
                }
                let place = fs::canonicalize(entry.path())
                    .map_err(|_| format!("{path} is a link that leads nowhere"))?;
                if !place.starts_with(&real) {
                    return Err(format!("{path} is a link that leads out of the folder"));
                }
                let found =
                    fs::metadata(&place).map_err(|_| format!("{path} cannot be read by this user"))?;
                if found.is_dir() {
                    left.push((path, place));
                    continue;
                }
                if !found.is_file() {
                    return Err(format!("{path} is no file"));
                }
                check_size(&path, found.len())?;
                bytes += found.len();
                if bytes > MAX_BYTES {
                    return Err(format!("the folder has more than {MAX_BYTES} bytes"));
                }
                folder.files.push(Found { path, place });
                if folder.files.len() > MAX_FILES {
                    return Err(format!("the folder has more than {MAX_FILES} files"));
                }
            }
        }
        folder.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(folder)
    }
}

impl Found {
    /// What is in the file.
    ///
    /// # Errors
    /// One plain sentence, where it cannot be read, or has grown too large.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let file =
            File::open(&self.place).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content));
        file.map_err(|_| format!("{} cannot be read by this user", self.path))?;
        check_size(&self.path, content.len() as u64)?;
        Ok(content)
    }

    /// Its media type by the end of its name.
    pub fn content_type(&self) -> String {
        let of_name = mime_guess::from_path(&self.path).first_or_octet_stream().essence_str().to_owned();
        let is_text = of_name.starts_with("text/") || of_name.ends_with("javascript");
        if is_text { of_name + "; charset=utf-8" } else { of_name }
    }
}

fn check_size(path: &str, bytes: u64) -> Result<(), String> {
    if bytes > MAX_FILE_BYTES {
        return Err(format!("{path} has more than {MAX_FILE_BYTES} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder as TestFolder;
    use std::os::unix::fs::symlink;

    fn write(root: &TestFolder, path: &str, content: &[u8]) {
        let place = root.0.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    #[test]
    fn files_are_found_with_their_types() {
        let root = TestFolder::new();
        for path in ["guide/index.html", "a b.css", "logo.svg", "x.unknown", ".well-known/security.txt"] {
            write(&root, path, b"x");
        }
        for path in [".git/config", "guide/.DS_Store"] {
            write(&root, path, b"x");
        }
        symlink(root.0.join("logo.svg"), root.0.join("guide/logo.svg")).unwrap();
        let folder = Folder::look_through(&root.0).unwrap();
        let found: Vec<_> = folder.files.iter().map(|file| (&file.path[..], file.content_type())).collect();
        let found: Vec<_> = found.iter().map(|(path, of)| (*path, &of[..])).collect();
        assert_eq!(
            found,
            [
                ("/.well-known/security.txt", "text/plain; charset=utf-8"),
                ("/a b.css", "text/css; charset=utf-8"),
                ("/guide/index.html", "text/html; charset=utf-8"),
                ("/guide/logo.svg", "image/svg+xml"),
                ("/logo.svg", "image/svg+xml"),
                ("/x.unknown", "application/octet-stream"),
            ]
        );
        assert_eq!(folder.hidden, 2);
        assert_eq!(folder.files[4].read().unwrap(), b"x");
    }

    #[test]
    fn what_cannot_be_published_is_named() {
        let said = |prepare: fn(&TestFolder)| {
            let root = TestFolder::new();
            prepare(&root);
            Folder::look_through(&root.0).unwrap_err()
        };
        assert!(said(|root| write(root, "docs/x.html", b"")).contains("/docs belongs to the built-in site"));
        assert!(said(|root| write(root, "healthz", b"")).contains("/healthz belongs"));
        assert!(said(|root| write(root, "v1/pets", b"")).contains("/v1 belongs"));
        assert!(
            said(|root| symlink("/etc/hostname", root.0.join("x")).unwrap())
                .contains("/x is a link that leads out")
        );
        assert!(
            said(|root| symlink("..", root.0.join("up")).unwrap()).contains("/up is a link that leads out")
        );
        assert!(said(|root| symlink("nowhere", root.0.join("x")).unwrap()).contains("leads nowhere"));
        assert!(said(|root| symlink(".", root.0.join("again")).unwrap()).contains("circle"));
        assert!(
            said(|root| write(root, "big.bin", &vec![0; MAX_FILE_BYTES as usize + 1]))
                .contains("/big.bin has more")
        );
        assert!(Folder::look_through(Path::new("/nowhere")).unwrap_err().contains("no folder /nowhere"));
        assert!(Folder::look_through(Path::new("/dev/null")).unwrap_err().contains("is no folder"));
    }

    #[test]
    fn file_that_grows_meanwhile_is_refused() {
        let root = TestFolder::new();
        write(&root, "a.txt", b"x");
        let folder = Folder::look_through(&root.0).unwrap();
        write(&root, "a.txt", &vec![0; MAX_FILE_BYTES as usize + 1]);
        assert!(folder.files[0].read().unwrap_err().contains("/a.txt has more"));
    }
}
