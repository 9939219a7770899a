//! A folder of static files that is to be published beside the built-in site. Nothing outside it is: no link is
//! followed, neither when the folder is looked through nor when a file is read, whatever changes meanwhile.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::api;

/// The most static files of a deploy, and the most folders that they lie in.
const MAX_FILES: usize = 2000;
/// The largest of them, in bytes: responses of this size have been tried under attack.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// All of them together, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
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
    root: Arc<File>,
}

impl Folder {
    /// Looks through a folder.
    ///
    /// # Errors
    /// One plain sentence that names the file that cannot be published, and says why.
    pub fn look_through(root: &Path) -> Result<Self, String> {
        let name = root.display();
        let root = File::open(root)
            .map_err(|_| format!("there is no folder {name}, or this user may not read it"))?;
        if !root.metadata().is_ok_and(|root| root.is_dir()) {
            return Err(format!("{name} is no folder"));
        }
        let root = Arc::new(root);
        let (mut folder, mut bytes, mut folders) = (Self::default(), 0, 0);
        let mut left = vec![String::new()];
        while let Some(path) = left.pop() {
            folders += 1;
            if folders > MAX_FILES {
                return Err(format!("{name} has more than {MAX_FILES} folders"));
            }
            for entry in entries(&root, &path)? {
                if entry.starts_with('.') && entry != WELL_KNOWN {
                    folder.hidden += 1;
                    continue;
                }
                let path = format!("{path}/{entry}");
                if entry.contains(|c: char| c.is_control() || c == '\\') {
                    return Err(format!(
                        "the name '{}' has a control character or a backslash",
                        path.escape_debug()
                    ));
                }
                if api::is_built_in(&path) {
                    return Err(format!("{path} belongs to the built-in site; give it another name"));
                }
                let found = open_below(&root, &path)?;
                let found = found.metadata().map_err(|error| refused(&path, &error))?;
                if found.is_dir() {
                    left.push(path);
                    continue;
                }
                if !found.is_file() {
                    return Err(format!("{path} is no file"));
                }
                check_size(&path, found.len())?;
                bytes += found.len();
                if bytes > MAX_BYTES {
                    return Err(format!("{name} has more than {MAX_BYTES} bytes"));
                }
                folder.files.push(Found { path, root: Arc::clone(&root) });
                if folder.files.len() > MAX_FILES {
                    return Err(format!("{name} has more than {MAX_FILES} files"));
                }
            }
        }
        folder.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(folder)
    }
}

/// The names in a folder below the root.
fn entries(root: &File, path: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for entry in Dir::read_from(open_below(root, path)?).map_err(|error| refused(path, &error.into()))? {
        let entry = entry.map_err(|error| refused(path, &error.into()))?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => names.push(name.to_owned()),
            Err(_) => {
                let name = entry.file_name().to_string_lossy();
                return Err(format!("the name '{path}/{}' is not UTF-8 text", name.escape_debug()));
            }
        }
    }
    Ok(names)
}

/// Opens what lies at a path below the root, without following a link in any part of it.
fn open_below(root: &File, path: &str) -> Result<File, String> {
    // NONBLOCK: a pipe that nobody writes to is opened all the same.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |folder: &File, name: &str| openat(folder.as_fd(), name, flags, Mode::empty());
    let mut place = open(root, ".").map(File::from).map_err(|error| refused(path, &error.into()))?;
    for name in path.split('/').skip(1) {
        place = open(&place, name).map(File::from).map_err(|error| refused(path, &error.into()))?;
    }
    Ok(place)
}

/// Why something cannot be published.
fn refused(path: &str, error: &io::Error) -> String {
    let path = if path.is_empty() { "the folder" } else { path };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => {
            format!("{path} is a link, which is not followed; put the file itself there")
        }
        Some(Errno::NOENT) => format!("{path} was removed meanwhile"),
        _ => format!("{path} cannot be read by this user"),
    }
}

impl Found {
    /// What is in the file.
    ///
    /// # Errors
    /// One plain sentence, where it cannot be read, has grown too large, or is no file any more.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let file = open_below(&self.root, &self.path)?;
        if !file.metadata().is_ok_and(|file| file.is_file()) {
            return Err(format!("{} is no file", self.path));
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(|error| refused(&self.path, &error))?;
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
    use crate::testing::Folder as TestFolder;
    use std::fs;
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
        let folder = Folder::look_through(&root.0).unwrap();
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
        let said = |prepare: fn(&TestFolder)| {
            let root = TestFolder::new();
            prepare(&root);
            Folder::look_through(&root.0).unwrap_err()
        };
        assert!(said(|root| write(root, "docs/x.html", b"")).contains("/docs belongs to the built-in site"));
        assert!(said(|root| write(root, "healthz", b"")).contains("/healthz belongs"));
        assert!(said(|root| write(root, "v1/pets", b"")).contains("/v1 belongs"));
        let link = "is a link, which is not followed";
        assert!(said(|root| symlink("/etc/hostname", root.0.join("x")).unwrap()).contains(link));
        assert!(said(|root| symlink("..", root.0.join("up")).unwrap()).contains("/up is a link"));
        assert!(said(|root| symlink("nowhere", root.0.join("x")).unwrap()).contains(link));
        assert!(
            said(|root| write(root, "a\u{1b}[31m.txt", b"")).contains("'/a\\u{1b}[31m.txt' has a control")
        );
        assert!(said(|root| write(root, "\\evil.example", b"")).contains("backslash"));
        assert!(
            said(|root| write(root, "big.bin", &vec![0; MAX_FILE_BYTES as usize + 1]))
                .contains("/big.bin has more")
        );
        assert!(Folder::look_through(Path::new("/nowhere")).unwrap_err().contains("no folder /nowhere"));
        assert!(Folder::look_through(Path::new("/dev/null")).unwrap_err().contains("is no folder"));
    }

    #[test]
    fn what_becomes_a_link_or_a_pipe_meanwhile_is_not_read() {
        let root = TestFolder::new();
        write(&root, "a/b.txt", b"x");
        let folder = Folder::look_through(&root.0).unwrap();
        let said = || folder.files[0].read().unwrap_err();
        fs::remove_file(root.0.join("a/b.txt")).unwrap();
        assert!(said().contains("/a/b.txt was removed meanwhile"));
        symlink("/etc/hostname", root.0.join("a/b.txt")).unwrap();
        assert!(said().contains("/a/b.txt is a link"));
        fs::remove_file(root.0.join("a/b.txt")).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.0.join("a/b.txt"), pipe, Mode::RUSR, 0).unwrap();
        assert!(said().contains("/a/b.txt is no file"));
        fs::remove_dir_all(root.0.join("a")).unwrap();
        symlink("/etc", root.0.join("a")).unwrap();
        assert!(said().contains("is a link"));
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
