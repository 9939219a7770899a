//! The key of a new database: in a file, or on a terminal; elsewhere it would be kept in a log by mistake.

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use petstore::{Config, Error, KeyRing, KeyScope, RingState};

use super::{print, print_soon};

/// What the key is called.
const NAME: &str = "first";

/// Looks at the keys at the start. Where none is valid, the log says how to make one. Makes the first key
/// where a file is named for it. Returns the ring where it is to be shown by [`show`].
///
/// # Errors
/// One plain line, where a file is named for the first key, and the key cannot be made or written: then there
/// is no key and no file.
pub fn prepare(config: &Config) -> Result<Option<KeyRing>, Error> {
    let file = config.first_key_file.as_deref();
    if config.api_key.is_some() {
        not_needed(file, "PETSTORE_API_KEY is set");
        return Ok(None);
    }
    let looked = KeyRing::open(&config.database).and_then(|ring| ring.state().map(|state| (ring, state)));
    let (mut ring, state) = match looked {
        Err(error) if file.is_none() => {
            log::error!("cannot look at the API keys: {error}");
            return Ok(None);
        }
        looked => looked?,
    };
    let trouble = match (state, file) {
        (RingState::New, Some(path)) => {
            write(&mut ring, path)?;
            log::warn!("the first API key is in {}", path.display());
            return Ok(None);
        }
        (RingState::New, None) if std::io::stdout().is_terminal() => return Ok(Some(ring)),
        (RingState::New, None) => "there is no API key",
        (RingState::Revoked, _) => "all API keys were revoked",
        (RingState::Expired, _) => "all API keys have expired",
        _ => {
            not_needed(file, "the database has an API key already");
            return Ok(None);
        }
    };
    warn(trouble, config);
    Ok(None)
}

/// Says to whoever waits for the first key in a file that it does not come.
fn not_needed(file: Option<&Path>, why: &str) {
    if let Some(path) = file {
        log::warn!("no first API key is written to {}, as {why}", path.display());
    }
}

/// Makes the first key, and shows it with `lines`, which are for people. Its own line ends once it is valid.
pub fn show(mut ring: KeyRing, config: &Config, lines: impl FnOnce(&str) -> String) {
    let mut after = String::new();
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        after = lines(key);
        print_soon(&format!(
            "\nThe database had no API key, so one was made. It is shown this once:\n\n    {key}"
        ))
    });
    match made {
        // Whoever has the key needs no more.
        Ok(()) => drop(print(&format!("\n\n{after}\n"))),
        Err(error) => warn(&format!("no API key was made: {error}"), config),
    }
}

fn warn(trouble: &str, config: &Config) {
    let path = std::path::absolute(&config.database).unwrap_or_else(|_| config.database.clone());
    log::warn!("{trouble}; make one: petstore key add NAME --database {}", path.display());
}

/// Makes the first key in a new file, which only its owner may read. What fails leaves no file.
fn write(ring: &mut KeyRing, path: &Path) -> Result<(), Error> {
    let mut is_made = false;
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        let cannot = |error| {
            let why = plain(&error);
            Error::from(format!(
                "cannot write the first API key to {} (--first-key-file): {why}",
                path.display()
            ))
        };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(cannot)?;
        is_made = true;
        file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)
    });
    if made.is_err() && is_made {
        let _ = std::fs::remove_file(path);
    }
    made
}

/// What the operating system means, in words for an operator.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => "the file is there already; move it away, or name another".to_owned(),
        ErrorKind::NotFound | ErrorKind::NotADirectory => "its folder is not there; make it".to_owned(),
        ErrorKind::PermissionDenied => "this user may not make files in its folder".to_owned(),
        _ => format!("the system says: {error}"),
    }
}
