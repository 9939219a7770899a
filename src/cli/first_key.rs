//! The API key of a new database. It goes to a file or to a terminal; anywhere else it could end up in a log.
//!
//! The file is there before the key is valid. A start that is killed in between leaves an empty file or a key, and the
//! next start takes either for its own. So that no key becomes valid that another user has put there, the file must belong
//! to this user, nobody else may write to it, and nobody else may rename files in its folder.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use petstore::{Config, Error, ErrorKind, KeyRing, KeyScope, RingState, flush_folder};

use super::keys::keep;
use super::output::{absolute, print};

/// The name of the key.
const NAME: &str = "first";

/// Checks the keys at the start, before the service answers. If none is valid, the log says how to create one. The first
/// key of a new database goes to the file that is named for it, unless the file has one, or else to a terminal. Returns a
/// key that was shown there.
///
/// # Errors
/// Fails if the keys cannot be read, or the first one cannot be created, written or shown.
pub fn prepare(config: &Config, file: Option<&Path>) -> Result<Option<String>, Error> {
    if config.api_key.is_some() {
        return Ok(None);
    }
    let mut ring = KeyRing::open(&config.database)?;
    let state = match (ring.state(), file) {
        (Ok(RingState::New), Some(path)) => {
            if let Some(key) = left(path).map_err(|error| unusable(path, error))? {
                let said = format!("cannot use {} as the first API key", path.display());
                let adopted = ring.adopt(NAME, key.strip_suffix('\n').unwrap_or(&key));
                adopted.map_err(|error| error.context(said))?;
                log::warn!("the first API key is the one in {}", path.display());
            } else {
                write(&mut ring, path)?;
                log::warn!("the first API key was written to {}", path.display());
            }
            return Ok(None);
        }
        (Ok(RingState::New), None) if std::io::stdout().is_terminal() => return show(&mut ring).map(Some),
        (Ok(RingState::New), None) => "there is no API key",
        (Ok(RingState::Revoked), _) => "all API keys were revoked",
        (Ok(RingState::Expired), _) => "all API keys have expired",
        (Err(error), _) if error.kind() != ErrorKind::DatabaseDamaged => return Err(error),
        // Requests that need a damaged page report it. Others are served.
        _ => return Ok(None),
    };
    let database = absolute(&config.database);
    log::warn!("{state}; to create one, run: petstore key add NAME --database {}", database.display());
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

/// The key that a start that was killed has left in the file, or the operator has put there; `None` if there is no file.
/// An empty one is deleted, so that the new one has the right mode.
///
/// # Errors
/// Fails if another user can have put it there.
fn left(path: &Path) -> io::Result<Option<String>> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let folder = fs::metadata(absolute(path).parent().unwrap_or(path))?;
    let this_user = rustix::process::geteuid().as_raw();
    let is_shared = folder.mode() & 0o022 != 0 && folder.mode() & 0o1000 == 0;
    let is_ours = file.is_file() && file.uid() == this_user && file.mode() & 0o022 == 0 && file.nlink() == 1;
    if is_shared || !is_ours || ![0, this_user].contains(&folder.uid()) {
        return Err(io::Error::other(
            "another user may have put it there; move it away, or choose another name",
        ));
    }
    if file.len() == 0 { fs::remove_file(path).map(|()| None) } else { fs::read_to_string(path).map(Some) }
}

fn unusable(path: &Path, error: io::Error) -> Error {
    Error::of_file(format_args!("cannot write the first API key to {}", path.display()), path, error)
}

/// Creates the first key in a new file that only its owner may read.
fn write(ring: &mut KeyRing, path: &Path) -> Result<(), Error> {
    let mut is_ours = false;
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        is_ours = made.is_ok();
        made.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()).and_then(|()| file.sync_all()))
            // So that the name of the file survives a power cut.
            .and_then(|()| flush_folder(absolute(path).parent().unwrap_or(path)))
            .map_err(|error| unusable(path, error))
    });
    made.inspect_err(|_| {
        if is_ours {
            drop(fs::remove_file(path));
        }
    })
}
