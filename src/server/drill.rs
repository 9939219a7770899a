//! The drill: restores a backup into a private folder, serves it, and asks the service as a client does.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{Server, SocketFolder};
use crate::config::{Config, Listen};
use crate::error::{Error, ErrorKind, fail};
use crate::keys::new_api_key;
use crate::maintenance::{Stop, restore};

/// The most pets on a page.
const PAGE: usize = 100;
/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tries out a backup: restores it into a private folder in the one for temporary files (`TMPDIR`), starts a service
/// on it that listens on a Unix socket in the folder, and asks the service whether it is ready and for all pets.
/// Returns their number. Changes neither the backup nor any other database, and removes the folder at the end.
///
/// ```no_run
/// let pets = petstore::drill("copy.db".as_ref(), &|| false)?;
/// println!("{pets} pets can be served from it");
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::BackupUnsound`] if the backup cannot be restored, or the service has other pets than the backup, the
/// errors of [`restore`] and of [`Server::start`], and [`ErrorKind::Interrupted`].
pub fn drill(file: &Path, stop: Stop) -> Result<u64, Error> {
    let folder = SocketFolder::new()?;
    let (database, socket, key) = (folder.file("pets.db"), folder.file("http"), new_api_key()?);
    let restored = restore(file, &database, stop)?;
    let _server = Server::start(Config {
        listen: Listen::Unix(socket.clone()),
        database,
        api_key: Some(key.clone()),
        ..Config::default()
    })?;
    get(&socket, &key, "/readyz")?;
    let (mut pets, mut after) = (0, String::new());
    loop {
        let page = get(&socket, &key, &format!("/v1/pets?limit={PAGE}{after}"))?;
        let page = page.as_array().map_or(&[][..], Vec::as_slice);
        let Some(last) = page.last() else { break };
        pets += page.len() as u64;
        after = format!("&after={}", last["id"]);
        if stop() {
            return fail(ErrorKind::Interrupted, "interrupted; nothing was changed");
        }
    }
    if pets != restored.pets {
        let (file, has) = (file.display(), restored.pets);
        let line = format!("{file} cannot be served: it has {has} pets, and the service lists {pets}");
        return fail(ErrorKind::BackupUnsound, line);
    }
    Ok(pets)
}

/// Sends one GET, which must be answered with 200 and JSON.
fn get(socket: &Path, key: &str, target: &str) -> Result<Value, Error> {
    let ask = || -> io::Result<String> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {target} HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    };
    let response = ask().map_err(|error| Error::io(format!("the service did not answer {target}"), error))?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    if head.split(' ').nth(1) != Some("200") {
        return fail(ErrorKind::Io, format!("the service answered {target} with: {}", response.trim()));
    }
    serde_json::from_str(body).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the response to {target} is not JSON: {error}"))
    })
}
