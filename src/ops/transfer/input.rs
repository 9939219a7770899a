//! The input of an import. It can be read twice: once to check the pets, and once to write them.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::base::error::Error;

/// How many bytes to read at once.
const PIECE: usize = 64 * 1024;

/// The source of the pets of an import.
#[non_exhaustive]
pub enum Source {
    /// A file. If it can be read only once, such as a named pipe, it is copied like a [`Stream`](Self::Stream).
    File(PathBuf),
    /// A stream. The import copies it to a file in the folder for temporary files (`TMPDIR`) that no other user may
    /// read, and that is gone when the process ends.
    Stream(Box<dyn Read>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Stream(_) => f.debug_tuple("Stream").finish_non_exhaustive(),
        }
    }
}

/// An input that can be read more than once.
#[derive(Debug)]
pub struct Input {
    file: File,
    /// The name of the input in messages.
    pub name: String,
}

impl Input {
    /// Opens a source, and copies it if it can be read only once.
    pub fn open(source: Source) -> Result<Self, Error> {
        match source {
            Source::Stream(stream) => Self::copied(stream, "standard input".to_owned()),
            Source::File(path) => {
                let name = path.display().to_string();
                let file = File::open(&path).map_err(|error| cannot_read(&name, error))?;
                let metadata = file.metadata().map_err(|error| cannot_read(&name, error))?;
                if metadata.is_file() { Ok(Self { file, name }) } else { Self::copied(Box::new(file), name) }
            }
        }
    }

    fn copied(mut stream: Box<dyn Read>, name: String) -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        let cannot = |error| Error::io(format!("cannot copy {name} to {} (TMPDIR)", folder.display()), error);
        let mut file = unnamed(&folder).map_err(cannot)?;
        io::copy(&mut stream, &mut file).map_err(cannot)?;
        Ok(Self { file, name })
    }

    /// Reads the input from its start.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn read(&self) -> Result<BufReader<&File>, Error> {
        (&self.file).rewind().map_err(|error| cannot_read(&self.name, error))?;
        Ok(BufReader::with_capacity(PIECE, &self.file))
    }

    /// The digest of the whole input.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], Error> {
        let mut source = self.read()?;
        let mut hash = hmac_sha256::Hash::new();
        loop {
            let piece = source.fill_buf().map_err(|error| cannot_read(&self.name, error))?;
            let length = piece.len();
            if length == 0 {
                return Ok(hash.finalize());
            }
            hash.update(piece);
            source.consume(length);
        }
    }
}

/// The error for a failure to read the input of this name.
pub fn cannot_read(name: &str, error: io::Error) -> Error {
    Error::io(format!("cannot read {name}"), error)
}

/// Creates a file without a name, so that nothing is left of it, however the process ends.
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
    use crate::base::error::ErrorKind;
    use crate::testing::Folder;

    fn text(input: &Input) -> String {
        let mut text = String::new();
        input.read().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn stream_can_be_read_twice_and_leaves_no_file() {
        let input = Input::open(Source::Stream(Box::new(&b"some\ntext"[..]))).unwrap();
        assert_eq!([text(&input), text(&input)], ["some\ntext"; 2]);
        let folder = Folder::new();
        let _file = unnamed(&folder.0).unwrap();
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn missing_file_and_folder_are_refused() {
        let folder = Folder::new();
        let kind = |path: PathBuf| Input::open(Source::File(path)).err().unwrap().kind();
        assert_eq!(kind(folder.0.join("none")), ErrorKind::FileMissing);
        assert_eq!(kind(folder.0.clone()), ErrorKind::InvalidInput);
    }
}
