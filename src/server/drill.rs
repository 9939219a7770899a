//! The drill: restores a backup into a private folder, serves it, and asks the service as a client does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Server, SocketFolder};
use crate::config::{Config, Listen};
use crate::error::{Error, ErrorKind, fail};
use crate::keys::new_api_key;
use crate::maintenance::{OnProgress, restore};

/// The most pets on a page.
const PAGE: usize = 100;
/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of a [`drill`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Drill {
    /// The number of pets, all of which a client has read.
    pub pets: u64,
    /// How long the restore took.
    pub restore: Duration,
    /// How long the service then took to be ready.
    pub start: Duration,
}

/// Tries out a backup: restores it into a private folder in the one for temporary files (`TMPDIR`), starts a service
/// on it that listens on a Unix socket in the folder, and asks the service whether it is ready, for all lists of pets
/// and for a single pet. Changes neither the backup nor any other database, and removes the folder at the end.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// let drill = petstore::drill("copy.db".as_ref(), &mut |_| ControlFlow::Continue(()))?;
/// println!("{} pets, restored in {:?}", drill.pets, drill.restore);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::BackupUnsound`] if the backup cannot be restored, or the service has other pets than the backup, the
/// errors of [`restore`] and of [`Server::start`], and [`ErrorKind::Interrupted`].
pub fn drill(file: &Path, on_progress: OnProgress) -> Result<Drill, Error> {
    let folder = SocketFolder::new()?;
    let (database, socket, key) = (folder.file("pets.db"), folder.file("http"), new_api_key()?);
    let config = Config {
        listen: Listen::Unix(socket.clone()),
        database: database.clone(),
        api_key: Some(key.clone()),
        ..Config::default()
    };
    let mut copied = None;
    let begun = Instant::now();
    let restored = restore(file, &database, &mut |progress| {
        copied = Some(progress);
        on_progress(progress)
    })?;
    let restore = begun.elapsed();
    let begun = Instant::now();
    let server = Server::start(config)?;
    let mut client = Client::open(&socket, key)?;
    client.get("/readyz")?;
    let start = begun.elapsed();

    let (mut pets, mut after) = (0, String::new());
    loop {
        let page = client.get(&format!("/v1/pets?limit={PAGE}{after}"))?;
        pets += page.as_array().map_or(0, Vec::len) as u64;
        let Some(last) = page.as_array().and_then(|page| page.last()) else { break };
        let id = last["id"].as_i64().unwrap_or_default();
        if client.get(&format!("/v1/pets/{id}"))? != *last {
            return unsound(file, format!("the pet {id} is not the same alone as in the list"));
        }
        if copied.is_some_and(|copied| on_progress(copied).is_break()) {
            return fail(ErrorKind::Interrupted, "interrupted; nothing was changed");
        }
        after = format!("&after={id}");
    }
    if pets != restored.pets {
        return unsound(file, format!("it has {}, and the service lists {pets}", restored.pets));
    }
    server.stopper().stop();
    server.wait()?;
    Ok(Drill { pets, restore, start })
}

fn unsound<T>(file: &Path, why: String) -> Result<T, Error> {
    fail(ErrorKind::BackupUnsound, format!("{} cannot be served: {why}", file.display()))
}

/// One connection to the service.
struct Client {
    stream: BufReader<UnixStream>,
    key: String,
}

impl Client {
    fn open(socket: &Path, key: String) -> Result<Self, Error> {
        let stream = UnixStream::connect(socket).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(BufReader::new(stream))
        });
        Ok(Self { stream: stream.map_err(|error| Error::io("cannot connect to the service", error))?, key })
    }

    /// Sends a GET, which must be answered with 200 and JSON.
    fn get(&mut self, target: &str) -> Result<Value, Error> {
        let answered = self
            .ask(target)
            .map_err(|error| Error::io(format!("the service did not answer {target}"), error));
        let (status, body) = answered?;
        if status != "200" {
            let text = String::from_utf8_lossy(&body);
            return fail(
                ErrorKind::Io,
                format!("the service answered {target} with {status}: {}", text.trim()),
            );
        }
        serde_json::from_slice(&body).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("the response to {target} is not JSON: {error}"))
        })
    }

    /// Sends a GET, and returns the status and the body.
    fn ask(&mut self, target: &str) -> io::Result<(String, Vec<u8>)> {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", self.key);
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("Content-Length") => {
                    length = value.parse().map_err(io::Error::other)?;
                }
                None => status = line.split(' ').nth(1).unwrap_or_default().to_owned(),
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }
}
