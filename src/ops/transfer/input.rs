//! The input of an import. It is read once, and its digest made on the way.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::PathBuf;

use petstore_base::error::Error;

/// The size of the input buffer, in bytes.
const PIECE: usize = 64 * 1024;

/// The source of the pets of an import.
#[non_exhaustive]
pub enum Source {
    /// A file, or a named pipe.
    File(PathBuf),
    /// A stream, which is read to its end.
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

/// An input that is being read.
pub struct Input {
    /// The name of the input in messages.
    pub name: String,
    /// The beginning, which shows the format.
    pub start: Vec<u8>,
    rest: Digested,
}

/// A reader that digests what it reads.
struct Digested {
    source: Box<dyn Read>,
    hash: hmac_sha256::Hash,
}

impl Read for Digested {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}

impl Input {
    /// Opens a source, and reads its beginning.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn open(source: Source) -> Result<Self, Error> {
        let (source, name): (Box<dyn Read>, String) = match source {
            Source::Stream(stream) => (stream, "standard input".to_owned()),
            Source::File(path) => {
                let name = path.display().to_string();
                let file = File::open(&path).map_err(|error| cannot_read(&name, error))?;
                (Box::new(file), name)
            }
        };
        let hash = hmac_sha256::Hash::new();
        let (mut rest, mut start) = (Digested { source, hash }, Vec::new());
        // A pipe may return a few bytes at a time.
        rest.by_ref()
            .take(PIECE as u64)
            .read_to_end(&mut start)
            .map_err(|error| cannot_read(&name, error))?;
        Ok(Self { name, start, rest })
    }

    /// The whole input, to be read once.
    pub fn read(&mut self) -> BufReader<Chain<Cursor<&[u8]>, impl Read>> {
        let all = Cursor::new(&*self.start).chain(&mut self.rest);
        BufReader::with_capacity(PIECE, all)
    }

    /// The digest of what was read.
    pub fn digest(self) -> [u8; 32] {
        self.rest.hash.finalize()
    }
}

/// The error for a failure to read the input of this name.
pub fn cannot_read(name: &str, error: io::Error) -> Error {
    Error::io(format!("cannot read {name}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::error::ErrorKind;
    use petstore_base::testing::Folder;

    #[test]
    fn input_is_read_whole_and_digested_once() {
        let text = "some\ntext".repeat(PIECE / 4);
        // A reader of single bytes, as a slow pipe is.
        struct Slow(Cursor<Vec<u8>>);
        impl Read for Slow {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let most = buffer.len().min(1000);
                self.0.read(&mut buffer[..most])
            }
        }
        let slow = Slow(Cursor::new(text.clone().into_bytes()));
        let mut input = Input::open(Source::Stream(Box::new(slow))).unwrap();
        assert_eq!(input.start.len(), PIECE);
        let mut read = String::new();
        input.read().read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(input.digest(), hmac_sha256::Hash::hash(text.as_bytes()));
    }

    #[test]
    fn missing_file_and_folder_are_refused() {
        let folder = Folder::new();
        let kind = |path: PathBuf| Input::open(Source::File(path)).err().unwrap().kind();
        assert_eq!(kind(folder.0.join("none")), ErrorKind::FileMissing);
        assert_eq!(kind(folder.0.clone()), ErrorKind::InvalidInput);
    }
}
