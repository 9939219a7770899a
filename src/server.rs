//! Puts the rooms together: opens the store, starts the lanes and the gate, and ends them in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::auth::{self, Authenticator};
use crate::gate::{Gate, Kind, LaneAddress, Listening, Settings};
use crate::keys::KeyRing;
use crate::pulse::Pulse;
use crate::service::PetService;
use crate::store::Store;
use crate::workers::Lane;
use crate::{Config, Error};

pub use crate::gate::Stopper;

/// The most requests in one reading lane at once.
const READ_WINDOW: usize = 64;
/// The most requests in the writing lane at once: they share a flush of the disk.
const WRITE_WINDOW: usize = 512;
/// Descriptors that the service itself needs, and those for each lane.
const OWN_DESCRIPTORS: usize = 24;
const LANE_DESCRIPTORS: usize = 8;
/// Clients beyond the most connections who are told so at once.
const MAX_REFUSED: usize = 256;
/// The fewest connections worth starting for.
const FEWEST_CONNECTIONS: usize = 4;

/// A running service. Dropping it ends it as [`Stopper::stop`] does, and waits for the end.
pub struct Server {
    address: SocketAddr,
    first_key: Option<String>,
    stopper: Stopper,
    gate: Option<JoinHandle<()>>,
}

impl Server {
    /// Opens the database, binds the address and starts to serve.
    ///
    /// # Errors
    /// Where the database is not ours, the address is not free, or there are too few descriptors.
    pub fn start(config: Config) -> Result<Self, Error> {
        if config.api_key.as_ref().is_some_and(|key| !auth::is_sendable(key)) {
            let characters = "letters, digits and - . _ ~ + /";
            return Err(format!("PETSTORE_API_KEY cannot be sent as a bearer token; use {characters}").into());
        }
        let (max_connections, max_refused) = connections_allowed(&config)?;
        let writer = Store::open_writer(&config.database)?;
        let listening = Listening::bind(config.listen)?;
        let address = listening.address()?;

        let folder = SocketFolder::new()?;
        let authenticator = Authenticator::new(config.api_key.as_deref());
        let pulse = Arc::new(Pulse::default());
        let (mut lanes, mut addresses) = (Vec::new(), Vec::new());
        for i in 0..config.workers.max(1) {
            let path = folder.0.join(format!("read-{i}"));
            let reader = Store::open_reader(&config.database)?;
            let service = PetService::reader(reader, authenticator.clone(), Arc::clone(&pulse));
            lanes.push(Lane::start(&path, format!("reader-{i}"), service)?);
            addresses.push(LaneAddress { path, kind: Kind::Read, window: READ_WINDOW });
        }
        let path = folder.0.join("write");
        let service = PetService::writer(writer, authenticator, Arc::clone(&pulse));
        let lane = Lane::start(&path, "writer".to_owned(), service)?;
        pulse.connect(lane.waker());
        lanes.push(lane);
        addresses.push(LaneAddress { path, kind: Kind::Write, window: WRITE_WINDOW });

        let deadlines = config.deadlines.clone();
        let settings = Settings { max_connections, max_refused, deadlines, lanes: addresses };
        let (gate, stopper) = Gate::new(listening, settings)?;
        // Last, as nothing must fail between making the key and showing it.
        let first_key = match config.api_key {
            Some(_) => None,
            None => KeyRing::open(&config.database)?.make_first()?,
        };
        let run = move || {
            gate.run();
            lanes.into_iter().for_each(Lane::stop);
            drop(folder);
        };
        let gate = std::thread::Builder::new()
            .name("gate".to_owned())
            .spawn(run)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { address, first_key, stopper, gate: Some(gate) })
    }

    /// The address that was bound, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The API key that was made because the database had none. It is kept nowhere else.
    pub fn first_key(&self) -> Option<&str> {
        self.first_key.as_deref()
    }

    /// What ends the service from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until the service has ended: every begun request answered, everything on the disk.
    ///
    /// # Errors
    /// Where it ended by a fault of its own.
    pub fn wait(mut self) -> Result<(), Error> {
        match self.gate.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(Error("the service failed; the log has the cause".to_owned())),
            _ => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            self.stopper.stop();
            let _ = gate.join();
        }
    }
}

/// How many connections are served at once, and how many further ones are refused with a word: as many
/// as wished, and no more than the descriptors allow.
fn connections_allowed(config: &Config) -> Result<(usize, usize), Error> {
    let limit = rlimit::increase_nofile_limit(u64::MAX)
        .map_err(|error| format!("cannot tell how many files may be open: {error}"))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let own = OWN_DESCRIPTORS + LANE_DESCRIPTORS * (config.workers + 1);
    let left = limit.saturating_sub(own);
    let max_refused = MAX_REFUSED.min(left / 8);
    let allowed = config.max_connections.min(left - max_refused);
    if allowed < FEWEST_CONNECTIONS.min(config.max_connections) {
        let needed = own + 2 * FEWEST_CONNECTIONS;
        return Err(format!(
            "too few files may be open: {limit}, and at least {needed} are needed (ulimit -n)"
        )
        .into());
    }
    if allowed < config.max_connections {
        log::warn!("at most {allowed} connections are served: only {limit} files may be open (ulimit -n)");
    }
    Ok((allowed, max_refused))
}

/// The private folder of the lanes' sockets, removed at the end.
struct SocketFolder(PathBuf);

/// How its name begins.
const FOLDER_PREFIX: &str = "petstore-lanes-";
/// A folder younger than this may belong to a service that is just starting.
const STARTING: Duration = Duration::from_secs(60);

impl SocketFolder {
    fn new() -> Result<Self, String> {
        use std::os::unix::fs::DirBuilderExt;
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let random = getrandom::u64().map_err(|error| format!("cannot get random bits: {error}"))?;
        let path = parent.join(format!("{FOLDER_PREFIX}{random:016x}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("cannot make the folder {} (TMPDIR): {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of services that were killed: nobody listens at their sockets.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        let is_old = || entry.metadata().and_then(|data| data.modified()).ok()?.elapsed().ok();
        if is_ours && is_old().is_some_and(|age| age > STARTING) {
            let writer = std::os::unix::net::UnixStream::connect(entry.path().join("write"));
            if writer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}
