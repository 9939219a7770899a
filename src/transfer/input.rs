//! Where an import reads from: something that can be read twice, first to check it and then to write it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// Where the animals of an import come from.
#[non_exhaustive]
pub enum Source {
    /// A file. Where it can be read only once, such as a pipe, it is copied as a stream is.
    File(PathBuf),
    /// A stream. It is copied to a file in the folder for temporary files (`TMPDIR`), which nobody else may read
    /// and which is gone when the process ends.
    Stream(Box<dyn Read>),
}

/// An input that can be read more than once.
pub struct Input {
    file: File,
    /// What it is called in a message.
    name: String,
    /// Its length and last change where others may change it; `None`: nobody can.
    state: Option<(u64, SystemTime)>,
}

impl Input {
    /// Opens a source, and copies it where that is needed.
    ///
    /// # Errors
    /// One plain line, where it cannot be read or copied.
    pub fn open(source: Source) -> Result<Self, Error> {
        match source {
            Source::Stream(stream) => Self::copied(stream, "standard input".to_owned()),
            Source::File(path) => {
                let name = path.display().to_string();
                let file = File::open(&path).map_err(|error| match error.kind() {
                    ErrorKind::NotFound => Error::from(format!("there is no file {name}")),
                    ErrorKind::PermissionDenied => Error::from(format!("no permission to read {name}")),
                    _ => cannot_read(&name, error),
                })?;
                let metadata = file.metadata().map_err(|error| cannot_read(&name, error))?;
                if metadata.is_dir() {
                    return Err(Error::from(format!("{name} is a folder; a file is needed")));
                }
                if !metadata.is_file() {
                    return Self::copied(Box::new(file), name);
                }
                let state = Some(state(&file).map_err(|error| cannot_read(&name, error))?);
                Ok(Self { file, name, state })
            }
        }
    }

    fn copied(mut stream: Box<dyn Read>, name: String) -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        let mut file = unnamed(&folder).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::from(format!("there is no folder {} (TMPDIR)", folder.display())),
            _ => Error::from(format!(
                "cannot make a file in {} (TMPDIR) to copy {name}: {error}",
                folder.display()
            )),
        })?;
        let mut piece = vec![0; PIECE];
        loop {
            let length = match stream.read(&mut piece) {
                Ok(0) => return Ok(Self { file, name, state: None }),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot_read(&name, error)),
            };
            io::Write::write_all(&mut file, &piece[..length]).map_err(|error| {
                Error::from(format!("cannot copy {name} to {} (TMPDIR): {error}", folder.display()))
            })?;
        }
    }

    /// Its bytes, from the start.
    ///
    /// # Errors
    /// One plain line, where it cannot be read, or was changed since it was opened.
    pub fn read(&self) -> Result<BufReader<&File>, Error> {
        self.check()?;
        (&self.file).rewind().map_err(|error| self.cannot_read(error))?;
        Ok(BufReader::with_capacity(PIECE, &self.file))
    }

    /// Says whether it is as it was when it was opened.
    ///
    /// # Errors
    /// One plain line, where it is not.
    pub fn check(&self) -> Result<(), Error> {
        let Some(opened) = self.state else { return Ok(()) };
        if state(&self.file).map_err(|error| self.cannot_read(error))? == opened {
            return Ok(());
        }
        Err(Error::from(format!("{} was changed meanwhile; import a copy that nobody changes", self.name)))
    }

    /// The failure to read it, for the operator.
    pub fn cannot_read(&self, error: io::Error) -> Error {
        cannot_read(&self.name, error)
    }
}

fn cannot_read(name: &str, error: io::Error) -> Error {
    Error::io(format!("cannot read {name}"), error)
}

fn state(file: &File) -> io::Result<(u64, SystemTime)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified()?))
}

/// A file without a name, so that nothing is left of it, however the process ends.
fn unnamed(folder: &Path) -> io::Result<File> {
    let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let path = folder.join(format!("petstore-import-{random:016x}"));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn text(input: &Input) -> String {
        let mut text = String::new();
        input.read().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn stream_is_read_twice_and_leaves_no_file() {
        let input = Input::open(Source::Stream(Box::new(&b"some\ntext"[..]))).unwrap();
        assert_eq!([text(&input), text(&input)], ["some\ntext"; 2]);
        let folder = Folder::new();
        let _file = unnamed(&folder.0).unwrap();
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn file_that_is_changed_is_noticed() {
        let folder = Folder::new();
        let path = folder.0.join("pets");
        std::fs::write(&path, "one").unwrap();
        let input = Input::open(Source::File(path.clone())).unwrap();
        assert_eq!(text(&input), "one");
        std::fs::write(&path, "three").unwrap();
        let said = input.read().err().unwrap().to_string();
        assert!(said.contains("changed meanwhile"), "{said}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = Folder::new();
        let said = |path: PathBuf| Input::open(Source::File(path)).err().unwrap().to_string();
        assert!(said(folder.0.join("none")).starts_with("there is no file"));
        assert!(said(folder.0.clone()).contains("is a folder"));
    }
}
