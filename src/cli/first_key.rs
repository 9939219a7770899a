//! The first API key of a new database. It is written to a file or shown on a terminal, and never printed elsewhere,
//! where it could end up in a log.
//!
//! The file is written before the key becomes valid. A start that is killed in between leaves an empty file or a file
//! with the key, and the next start continues with it. So that another user cannot choose the key, the file must belong
//! to this user, nobody else may write to it, and nobody else may rename files in its folder.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use petstore::{
    Config, Error, ErrorKind, KeyRing, KeyScope, RingState, create_private, flush_folder, folder_of,
};

use super::keys::create;
use super::manual::quote;
use super::output::{absolute, print};

/// The name of the key.
const NAME: &str = "first";

/// Checks the keys at the start, before the first response. A new database gets its first key: the key in `file`, or a
/// new one that is written to `file`; without `file`, a new one that is shown if standard output is a terminal. If no
/// key is valid otherwise, the log advises how to create one. Returns a key that was shown.
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
                log::info!("the first API key is the one in {}", path.display());
            } else {
                write(&mut ring, path)?;
                log::info!("the first API key was written to {}", path.display());
            }
            return Ok(None);
        }
        (Ok(RingState::New), None) if std::io::stdout().is_terminal() => {
            return show(&mut ring).map(Some);
        }
        (Ok(RingState::New), None) => "there is no API key",
        (Ok(RingState::Revoked), _) => "all API keys were revoked",
        (Ok(RingState::Expired), _) => "all API keys have expired",
        (Err(error), _) if error.kind() != ErrorKind::DatabaseDamaged => return Err(error),
        // The database is damaged: requests that need a damaged page fail, and others succeed.
        _ => return Ok(None),
    };
    let database = quote(&absolute(&config.database).to_string_lossy());
    log::warn!("{state}; to create one, run: petstore key add NAME --database {database}");
    Ok(None)
}

/// Creates the first key and prints it.
fn show(ring: &mut KeyRing) -> Result<String, Error> {
    let key = create(ring, NAME, None, KeyScope::Full)?;
    print(&format!(
        "The database had no API key, so this one was created. It is shown only once:\n\n    {key}\n\n"
    ))?;
    Ok(key)
}

/// Reads the key in the file, which a killed start or the operator has put there; `None` if there is no file. Deletes
/// an empty file, so that the new one gets the right mode.
///
/// # Errors
/// Fails if another user may have put the file there.
fn left(path: &Path) -> io::Result<Option<String>> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let folder = fs::metadata(folder_of(path))?;
    let this_user = rustix::process::geteuid().as_raw();
    let is_shared = folder.mode() & 0o022 != 0 && folder.mode() & 0o1000 == 0;
    let is_ours =
        file.is_file() && file.uid() == this_user && file.mode() & 0o022 == 0 && file.nlink() == 1;
    if is_shared || !is_ours || ![0, this_user].contains(&folder.uid()) {
        return Err(io::Error::other(
            "another user may have put it there; move it away, or choose another name",
        ));
    }
    if file.len() == 0 {
        fs::remove_file(path).map(|()| None)
    } else {
        fs::read_to_string(path).map(Some)
    }
}

fn unusable(path: &Path, error: io::Error) -> Error {
    Error::of_file(
        format_args!("cannot write the first API key to {}", path.display()),
        path,
        error,
    )
}

/// Creates the first key in a new file that only its owner may read.
fn write(ring: &mut KeyRing, path: &Path) -> Result<(), Error> {
    let mut is_ours = false;
    let made = ring.add(NAME, None, KeyScope::Full, |key| {
        let made = create_private(path);
        is_ours = made.is_ok();
        made.and_then(|mut file| {
            file.write_all(format!("{key}\n").as_bytes())
                .and_then(|()| file.sync_all())
        })
        // So that the name of the file survives a power cut.
        .and_then(|()| flush_folder(folder_of(path)))
        .map_err(|error| unusable(path, error))
    });
    made.inspect_err(|_| {
        if is_ours {
            drop(fs::remove_file(path));
        }
    })
}
