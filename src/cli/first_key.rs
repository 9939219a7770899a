//! The API key of a new database. It goes to a file or to a terminal; anywhere else it could end up in a log.
//!
//! The file is there before the key is valid. A start that is killed in between leaves a key that is never valid, and the
//! next start refuses the file, so no key is ever valid that somebody else has put there.

use std::fs::{self, File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use petstore::{Config, Error, ErrorKind, KeyRing, KeyScope, RingState};

use super::keys::keep;
use super::output::{absolute, print};

/// The name of the key.
const NAME: &str = "first";

/// Looks at the keys at the start, before the service answers. If none is valid, the log tells how to create one. The
/// first key of a new database goes to the file that is named for it, or else to a terminal. Returns a key that was shown
/// there.
///
/// # Errors
/// Fails if the keys cannot be read, or the first one cannot be created, written or shown.
pub fn prepare(config: &Config, file: Option<&Path>) -> Result<Option<String>, Error> {
    if config.api_key.is_some() {
        return Ok(None);
    }
    let mut ring = KeyRing::open(&config.database)?;
    let state = match ring.state() {
        // Whoever needs the damaged page is told. Other requests are served.
        Err(error) if error.kind() == ErrorKind::DatabaseDamaged => {
            log::error!("the API keys cannot be read: {error}");
            return Ok(None);
        }
        state => state?,
    };
    let trouble = match (state, file) {
        (RingState::New, Some(path)) => {
            write(&mut ring, path)?;
            log::warn!("the first API key was written to {}", path.display());
            return Ok(None);
        }
        (RingState::New, None) if std::io::stdout().is_terminal() => return show(&mut ring).map(Some),
        (RingState::New, None) => "there is no API key",
        (RingState::Revoked, _) => "all API keys were revoked",
        (RingState::Expired, _) => "all API keys have expired",
        _ => return Ok(None),
    };
    let database = absolute(&config.database);
    log::warn!("{trouble}; to create one, run: petstore key add NAME --database {}", database.display());
    Ok(None)
}

/// Creates the first key and prints it.
fn show(ring: &mut KeyRing) -> Result<String, Error> {
    let mut key = String::new();
    ring.add(NAME, None, KeyScope::Full, |made| keep(&mut key, made))?;
    print(&format!(
        "The database had no API key, so this one was created. It is shown only once:\n\n    {key}\n\n"
    ))?;
    Ok(key)
}

/// Creates the first key in a new file that only its owner may read.
fn write(ring: &mut KeyRing, path: &Path) -> Result<(), Error> {
    let mut is_ours = false;
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        is_ours = made.is_ok();
        made.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()))
            // So that the name of the file survives a power cut.
            .and_then(|()| File::open(absolute(path).parent().unwrap_or(path))?.sync_all())
            .map_err(|error| {
                Error::of_file(
                    format_args!("cannot write the first API key to {}", path.display()),
                    path,
                    error,
                )
            })
    });
    made.inspect_err(|_| {
        if is_ours {
            drop(fs::remove_file(path));
        }
    })
}
