//! The API key of a new database. It goes to a file or to a terminal; anywhere else it could end up in a log.
//!
//! The file is written before the key is valid. If the process is killed in between, the next start makes the key in
//! the file valid, or writes another one if it is not whole.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as Os, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use petstore::{Config, Error, ErrorKind, KeyRing, KeyScope, RingState};

use super::output::{absolute, print};

/// The length of the file: a key, and the end of the line.
const LINE: usize = 74;
/// The name of the key.
const NAME: &str = "first";

/// Refuses a file for the first key that is another's, or whose folder does not exist, before a database is created.
pub fn check_file(config: &Config, file: Option<&Path>) -> Result<(), Error> {
    let is_needed = config.api_key.is_none() && !petstore::database_exists(&config.database);
    file.filter(|_| is_needed).map_or(Ok(()), |path| look(path).map(drop))
}

/// Looks at the keys at the start. If none is valid, the log tells how to create one. If a file is named for the
/// first key of a new database, creates the key there. Returns the ring if [`show`] is to print the key.
///
/// # Errors
/// Fails if a file is named and the key cannot be created or written. There is no key then.
pub fn prepare(config: &Config, file: Option<&Path>) -> Result<Option<KeyRing>, Error> {
    if config.api_key.is_some() {
        return Ok(None);
    }
    let found = KeyRing::open(&config.database).and_then(|ring| ring.state().map(|state| (ring, state)));
    let (mut ring, state) = match found {
        Err(error) if file.is_none() => {
            log::error!("cannot read the API keys: {error}");
            return Ok(None);
        }
        found => found?,
    };
    let trouble = match (state, file) {
        (RingState::New, Some(path)) => {
            ring.add_made(&key_in(path)?, NAME, None, KeyScope::Full, |_| Ok(()))?;
            log::warn!("the first API key was written to {}", path.display());
            return Ok(None);
        }
        (RingState::New, None) if std::io::stdout().is_terminal() => return Ok(Some(ring)),
        (RingState::New, None) => "there is no API key",
        (RingState::Revoked, _) => "all API keys were revoked",
        (RingState::Expired, _) => "all API keys have expired",
        _ => return Ok(None),
    };
    warn(trouble, config);
    Ok(None)
}

/// Creates the first key and prints it, then `lines` for people. The line of the key ends once the key is valid.
pub fn show(mut ring: KeyRing, config: &Config, lines: impl FnOnce(&str) -> String) {
    let mut after = String::new();
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        after = lines(key);
        print(&format!(
            "\nThe database had no API key, so this one was created. It is shown only once:\n\n    {key}"
        ))
    });
    match made {
        // The key itself has been printed.
        Ok(()) => drop(print(&format!("\n\n{after}\n"))),
        Err(error) => warn(&format!("no API key was created: {error}"), config),
    }
}

fn warn(trouble: &str, config: &Config) {
    let database = absolute(&config.database);
    log::warn!("{trouble}; to create one, run: petstore key add NAME --database {}", database.display());
}

/// What a killed start has left in the file; nothing if there is no file.
///
/// # Errors
/// Fails if the file is not that of a key, or its folder does not exist.
fn look(path: &Path) -> Result<String, Error> {
    if !folder(path).is_dir() {
        return Err(cannot_write(path, Os::NotFound.into()));
    }
    let text = match path.symlink_metadata() {
        Err(_) => return Ok(String::new()),
        Ok(file) if file.is_file() => fs::read_to_string(path).map_err(|error| cannot_write(path, error))?,
        Ok(_) => return Err(cannot_write(path, Os::AlreadyExists.into())),
    };
    // One key at most, whole or not.
    let is_ours = text.is_empty() || text.starts_with("petstore_") && text.len() <= LINE;
    if is_ours { Ok(text) } else { Err(cannot_write(path, Os::AlreadyExists.into())) }
}

/// The key that a killed start has left in the file, or a new one, in a new file that only its owner may read.
fn key_in(path: &Path) -> Result<String, Error> {
    let left = look(path)?;
    if petstore::is_api_key(left.trim_end()) {
        return Ok(left.trim_end().to_owned());
    }
    let key = petstore::new_api_key()?;
    // It has no whole key.
    let _ = fs::remove_file(path);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()))
        // The name of the file survives a power cut as well.
        .and_then(|()| File::open(folder(path))?.sync_all())
        .map_err(|error| cannot_write(path, error))?;
    Ok(key)
}

fn folder(path: &Path) -> PathBuf {
    absolute(path).parent().map_or_else(PathBuf::new, Path::to_owned)
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    let (kind, why) = match error.kind() {
        Os::AlreadyExists => (ErrorKind::FileExists, "the file already exists".to_owned()),
        Os::NotFound | Os::NotADirectory => {
            (ErrorKind::FileMissing, "its folder does not exist; create it first".to_owned())
        }
        Os::PermissionDenied => {
            (ErrorKind::PermissionDenied, "this user cannot create files in its folder".to_owned())
        }
        _ => (ErrorKind::Io, error.to_string()),
    };
    let line = format!("cannot write the first API key to {}: {why}", path.display());
    Error::new(kind, line).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_be_read_end_only_a_start_that_was_to_write_one() {
        let folder = std::env::temp_dir().join(format!("petstore-first-key-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut config = Config::default();
        config.database = folder.join("pets.db");
        fs::write(&config.database, "not a database, but long enough to be looked at").unwrap();
        let path = folder.join("first-key");
        let [without, with] = [None, Some(path.as_path())].map(|file| prepare(&config, file));
        let is_written = path.exists();
        fs::remove_dir_all(&folder).unwrap();
        assert!(without.unwrap().is_none());
        assert_eq!(with.err().map(|error| error.kind()), Some(ErrorKind::DatabaseForeign));
        assert!(!is_written);
    }
}
