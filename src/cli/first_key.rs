//! The API key of a new database. It goes to a file or to a terminal; anywhere else it could end up in a log.
//!
//! The file gets its name once the key is valid. Until then it is `NAME.partial`, also if the process is killed: the
//! next start gives the file its name if the key is valid, and otherwise writes another one. So no key is ever valid
//! that somebody else has put there.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as Os, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use petstore::{Config, Error, KeyRing, KeyScope, RingState};

use super::output::{absolute, print};

/// The name of the key.
const NAME: &str = "first";

/// Refuses a file for the first key that exists, or whose folder does not exist, before a database is created.
pub fn check_file(config: &Config, file: Option<&Path>) -> Result<(), Error> {
    let is_needed = config.api_key.is_none() && !petstore::database_exists(&config.database);
    file.filter(|_| is_needed).map_or(Ok(()), check_new)
}

/// Looks at the keys at the start, before the service answers. If none is valid, the log tells how to create one. The
/// first key of a new database goes to the file that is named for it, or else to a terminal. Returns a key that was shown
/// there.
///
/// # Errors
/// Fails if a file is named and the key cannot be created or written. There is no key then.
pub fn prepare(config: &Config, file: Option<&Path>) -> Result<Option<String>, Error> {
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
    if let Some(path) = file
        && (finish(&ring, path)? || state == RingState::New && write(&mut ring, path)?)
    {
        log::warn!("the first API key was written to {}", path.display());
        return Ok(None);
    }
    let trouble = match (state, file) {
        (RingState::New, None) if std::io::stdout().is_terminal() => return Ok(show(ring, config)),
        (RingState::New, None) => "there is no API key",
        (RingState::Revoked, _) => "all API keys were revoked",
        (RingState::Expired, _) => "all API keys have expired",
        _ => return Ok(None),
    };
    warn(trouble, config);
    Ok(None)
}

/// Creates the first key and prints it. The line of the key ends once the key is valid.
fn show(mut ring: KeyRing, config: &Config) -> Option<String> {
    let mut shown = None;
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        shown = Some(key.to_owned());
        print(&format!(
            "The database had no API key, so this one was created. It is shown only once:\n\n    {key}"
        ))
    });
    match made {
        // The key itself has been printed.
        Ok(()) => drop(print("\n\n")),
        Err(error) => {
            shown = None;
            warn(&format!("no API key was created: {error}"), config);
        }
    }
    shown
}

fn warn(trouble: &str, config: &Config) {
    let database = absolute(&config.database);
    log::warn!("{trouble}; to create one, run: petstore key add NAME --database {}", database.display());
}

fn check_new(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(cannot_write(path, Os::AlreadyExists.into())),
        Err(_) if !folder(path).is_dir() => Err(cannot_write(path, Os::NotFound.into())),
        Err(_) => Ok(()),
    }
}

/// Whether a killed start has left a valid key, whose file then gets its name.
fn finish(ring: &KeyRing, path: &Path) -> Result<bool, Error> {
    match fs::read_to_string(partial(path)) {
        Ok(text) if ring.is_valid(text.trim_end())? => put(path),
        _ => Ok(false),
    }
}

/// Creates the first key in a new file that only its owner may read.
fn write(ring: &mut KeyRing, path: &Path) -> Result<bool, Error> {
    check_new(path)?;
    let partial = partial(path);
    // A killed start has left it, and its key is not valid.
    let _ = fs::remove_file(&partial);
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
        made.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| flush_names(path))
            .map_err(|error| cannot_write(path, error))
    });
    made.inspect_err(|_| drop(fs::remove_file(&partial)))?;
    put(path)
}

/// The name of the file until its key is valid.
fn partial(path: &Path) -> PathBuf {
    path.with_added_extension("partial")
}

fn put(path: &Path) -> Result<bool, Error> {
    let put = fs::rename(partial(path), path).and_then(|()| flush_names(path));
    put.map(|()| true).map_err(|error| cannot_write(path, error))
}

/// Makes the names of the files survive a power cut.
fn flush_names(path: &Path) -> std::io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> PathBuf {
    absolute(path).parent().map_or_else(PathBuf::new, Path::to_owned)
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::of_file(format_args!("cannot write the first API key to {}", path.display()), path, error)
}

#[cfg(test)]
mod tests {
    use petstore::ErrorKind;

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
