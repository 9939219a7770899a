//! The socket of a lane. Its file is removed as soon as the gate has connected, so nobody else can. Only a process that is
//! killed between these two steps leaves the file, `petstore-lane-…`.

use std::fs::{File, remove_file};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{Mode, fchmod};
use socket2::{Domain, SockAddr, Socket, Type};

use petstore_base::error::Error;

/// Opens the file of a socket without opening the socket (open(2)).
const O_PATH: i32 = 0o10_000_000;

/// The worker's end of a lane: a listener with one connection, that of the gate.
pub struct LaneListener {
    pub(crate) listener: UnixListener,
    pub(crate) unblocker: Unblocker,
}

impl LaneListener {
    /// Makes a socket in a folder. Returns the gate's end too.
    ///
    /// # Errors
    /// If the folder cannot be written, or the process can open no more files.
    pub fn bind(folder: &Path) -> Result<(Self, UnixStream), Error> {
        let what = || format!("cannot make a socket in {} (TMPDIR)", folder.display());
        Self::open(folder).map_err(|error| Error::io(what(), error))
    }

    fn open(folder: &Path) -> io::Result<(Self, UnixStream)> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let name = format!("petstore-lane-{random:016x}");
        let mut path = folder.join(&name);
        // Its path has 107 bytes at most (unix(7)). A descriptor is a short name for a folder.
        let held;
        if SockAddr::unix(&path).is_err() {
            held = File::open(folder)?;
            path = format!("/proc/self/fd/{}/{name}", held.as_raw_fd()).into();
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // Linux gives the file the mode of the socket, so other users can never connect. Other systems reject this, and use
        // the umask.
        let _ = fchmod(&socket, Mode::RWXU);
        socket.bind(&SockAddr::unix(&path)?)?;
        let connected = socket.listen(1).and_then(|()| UnixStream::connect(&path));
        let unblocker = Unblocker(
            File::options()
                .read(true)
                .custom_flags(O_PATH)
                .open(&path)
                .ok(),
        );
        remove_file(&path)?;
        Ok((
            Self {
                listener: socket.into(),
                unblocker,
            },
            connected?,
        ))
    }
}

impl From<LaneListener> for OwnedFd {
    /// The socket, which listens.
    fn from(listener: LaneListener) -> Self {
        listener.listener.into()
    }
}

/// Connects to the listener when it is dropped. `tiny_http` ends its accepting thread by a connection to the file of the
/// socket, which is removed. Other systems than Linux cannot open a socket as a file; there, the thread stays until the
/// process ends.
pub struct Unblocker(Option<File>);

impl Drop for Unblocker {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            // A short path to an open file (proc(5)).
            let _ = UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()));
        }
    }
}
