//! The socket that listens, bound here or passed by a supervisor. It recovers when the operating system runs out of
//! resources.

use std::io::{self, ErrorKind as Os};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::addresses::Peer;
use crate::listen::{Address, Listen};
use crate::socket_file::{BACKLOG, SocketFile};
use petstore_base::error::{Error, ErrorKind};

/// A listening socket and its origin.
pub struct Listening {
    /// Dropped before the socket, so that nobody finds the file of a closed socket.
    _file: Option<SocketFile>,
    socket: ListeningSocket,
    /// The address, with the actual port.
    pub address: Address,
    /// A supervisor keeps the socket open, so that the next service accepts its backlog.
    pub is_passed: bool,
    /// The backlog may have clients: set by events, cleared when it is empty.
    pub is_ready: bool,
    /// The end of the last pause without accepting, if resources have been short since the backlog was empty.
    paused_until: Option<Instant>,
}

/// The pause when there are no descriptors or no memory for one more client.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns whether a socket listens. Not every system reports this.
#[cfg(target_os = "linux")]
fn listens(socket: &Socket) -> bool {
    socket.is_listener().unwrap_or(true)
}

#[cfg(not(target_os = "linux"))]
fn listens(_: &Socket) -> bool {
    true
}

enum ListeningSocket {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener),
}

impl Listening {
    /// Listens, so that clients can connect. A gate accepts them once it runs.
    ///
    /// # Errors
    /// [`ErrorKind::AddressInUse`], [`ErrorKind::AddressUnavailable`] or [`ErrorKind::SocketUnusable`].
    pub fn bind(listen: &Listen) -> Result<Self, Error> {
        match listen {
            Listen::Tcp(address) => Self::tcp(*address).map_err(|error| cannot(*address, error)),
            Listen::Host(host, port) => Self::host(host, *port),
            Listen::Unix(path) => {
                let (socket, file) = SocketFile::listen(path)?;
                let listening = Self::new(socket, false).map_err(|error| {
                    Error::io(format!("cannot listen on unix:{}", path.display()), error)
                })?;
                Ok(Self {
                    _file: Some(file),
                    address: Address::Unix(path.clone()),
                    ..listening
                })
            }
            Listen::Socket(passed) => Self::passed(passed),
        }
    }

    fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // A restarted service gets its port at once, even if old connections linger.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG as i32)?;
        Self::new(socket, false)
    }

    /// The first of a host's addresses that this machine has.
    fn host(host: &str, port: u16) -> Result<Self, Error> {
        let found = (host, port).to_socket_addrs().into_iter().flatten();
        let mut reason = None;
        for address in found {
            match Self::tcp(address) {
                Err(error) if error.kind() == Os::AddrNotAvailable => {
                    reason.get_or_insert(cannot(address, error));
                }
                bound => return bound.map_err(|error| cannot(address, error)),
            }
        }
        let unknown = || format!("cannot listen on {host}:{port}: the host {host} has no address");
        Err(reason.unwrap_or_else(|| Error::new(ErrorKind::AddressUnavailable, unknown())))
    }

    fn passed(passed: &OwnedFd) -> Result<Self, Error> {
        let cannot = |what: &str| {
            let line = format!("cannot listen on the socket that was passed: {what}");
            Error::new(ErrorKind::SocketUnusable, line)
        };
        let socket = passed
            .try_clone()
            .map(Socket::from)
            .map_err(|error| cannot(&format!("it is not open: {error}")))?;
        let is_stream = socket.r#type().ok() == Some(Type::STREAM);
        if !is_stream || socket.peer_addr().is_ok() || !listens(&socket) {
            return Err(cannot("it is not a stream socket that listens"));
        }
        Self::new(socket, true).map_err(|error| cannot(&error.to_string()))
    }

    fn new(socket: Socket, is_passed: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (socket, address) = if socket.local_addr()?.is_unix() {
            let listener = UnixListener::from(OwnedFd::from(socket));
            // A name without a file begins with `@`.
            let path = listener
                .local_addr()?
                .as_pathname()
                .unwrap_or(Path::new("@"))
                .to_owned();
            let address = Address::Unix(path);
            (
                ListeningSocket::Unix(mio::net::UnixListener::from_std(listener)),
                address,
            )
        } else {
            let listener = TcpListener::from(socket);
            let address = Address::Tcp(listener.local_addr()?);
            (
                ListeningSocket::Tcp(mio::net::TcpListener::from_std(listener)),
                address,
            )
        };
        Ok(Self {
            _file: None,
            socket,
            address,
            is_passed,
            is_ready: false,
            paused_until: None,
        })
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListeningSocket::Tcp(socket) => registry.register(socket, token, Interest::READABLE),
            ListeningSocket::Unix(socket) => registry.register(socket, token, Interest::READABLE),
        }
    }

    /// The time until the next try to accept; `None` if it needs an event.
    pub fn next_try(&self, now: Instant) -> Option<Duration> {
        self.is_ready.then(|| {
            self.paused_until
                .map_or(Duration::ZERO, |end| end.saturating_duration_since(now))
        })
    }

    /// Accepts one client; `None` if the backlog is empty, or during a pause.
    ///
    /// # Errors
    /// If there is no descriptor or memory for the client.
    pub fn accept(&mut self, now: Instant) -> io::Result<Option<(TcpStream, Peer)>> {
        if !self.is_ready || self.paused_until.is_some_and(|until| now < until) {
            return Ok(None);
        }
        loop {
            let accepted = match &self.socket {
                ListeningSocket::Tcp(socket) => socket
                    .accept()
                    .map(|(stream, peer)| (stream, Peer::Tcp(peer))),
                ListeningSocket::Unix(socket) => socket
                    .accept()
                    .map(|(stream, _)| (OwnedFd::from(stream).into(), Peer::Unix)),
            };
            match accepted {
                Ok(client) => return Ok(Some(client)),
                Err(error) if error.kind() == Os::WouldBlock => {
                    self.is_ready = false;
                    self.paused_until = None;
                    return Ok(None);
                }
                // The client left before it was accepted.
                Err(error) if matches!(error.kind(), Os::Interrupted | Os::ConnectionAborted) => {}
                Err(error) => {
                    if self.paused_until.replace(now + PAUSE).is_none() {
                        log::error!("cannot accept connections: {error}");
                    }
                    return Err(error);
                }
            }
        }
    }
}

/// The error for an address that cannot be bound.
fn cannot(address: SocketAddr, error: io::Error) -> Error {
    let is_denied = error.kind() == Os::PermissionDenied;
    let error = Error::io(format!("cannot listen on {address}"), error);
    if is_denied {
        error.with_kind(ErrorKind::AddressUnavailable)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;
    use std::sync::Arc;

    fn refused(listen: &Listen) -> (ErrorKind, String) {
        let error = Listening::bind(listen).err().unwrap();
        (error.kind(), error.to_string())
    }

    fn passed(socket: impl Into<OwnedFd>) -> Listen {
        Listen::Socket(Arc::new(socket.into()))
    }

    #[test]
    fn address_that_cannot_be_bound_is_named() {
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let address = listening.address.tcp().unwrap();
        let starts = |(kind, line): (ErrorKind, String), address: SocketAddr| {
            assert!(
                line.starts_with(&format!("cannot listen on {address}: ")),
                "{line}"
            );
            kind
        };
        assert_eq!(
            starts(refused(&address.into()), address),
            ErrorKind::AddressInUse
        );
        // Reserved for documentation (RFC 5737).
        let lacking = SocketAddr::from(([192, 0, 2, 1], 80));
        assert_eq!(
            starts(refused(&lacking.into()), lacking),
            ErrorKind::AddressUnavailable
        );
        let privileged = cannot(([0, 0, 0, 0], 80).into(), Os::PermissionDenied.into());
        assert_eq!(privileged.kind(), ErrorKind::AddressUnavailable);
    }

    #[test]
    fn host_is_looked_up() {
        let listening = Listening::bind(&Listen::Host("localhost".to_owned(), 0)).unwrap();
        assert!(listening.address.tcp().unwrap().ip().is_loopback());
        // A name that never exists (RFC 6761, section 6.4).
        let (kind, line) = refused(&Listen::Host("nowhere.invalid".to_owned(), 80));
        assert_eq!(kind, ErrorKind::AddressUnavailable);
        assert!(
            line.ends_with(": the host nowhere.invalid has no address"),
            "{line}"
        );
    }

    #[test]
    fn passed_sockets_are_known_by_their_kind() {
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = Address::Tcp(tcp.local_addr().unwrap());
        let listening = Listening::bind(&passed(tcp)).unwrap();
        assert_eq!((listening.address, listening.is_passed), (address, true));
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let listening = Listening::bind(&passed(UnixListener::bind(&path).unwrap())).unwrap();
        assert_eq!(listening.address, Address::Unix(path.clone()));
        drop(listening);
        assert!(path.exists(), "the file is the supervisor's");
    }

    #[test]
    fn passed_descriptors_that_do_not_listen_are_rejected() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let datagrams = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let bound = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        bound
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        for (listen, why) in [
            (passed(file), "it is not a stream socket that listens"),
            (passed(datagrams), "it is not a stream socket that listens"),
            (passed(one), "it is not a stream socket that listens"),
            (passed(bound), "it is not a stream socket that listens"),
        ] {
            let (kind, line) = refused(&listen);
            assert_eq!(kind, ErrorKind::SocketUnusable, "{line}");
            assert!(line.ends_with(why), "{line}");
        }
    }

    #[test]
    fn absent_address_and_used_address_are_different_errors() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let refused = |host: &str| {
            let error = Listening::host(host, port).err().unwrap();
            (error.kind(), error.to_string())
        };
        assert_eq!(refused("127.0.0.1").0, ErrorKind::AddressInUse);
        // TEST-NET-1 (RFC 5737).
        let (kind, line) = refused("192.0.2.1");
        assert_eq!(kind, ErrorKind::AddressUnavailable);
        assert!(
            line.contains(&format!("192.0.2.1:{port}")) && !line.contains("has no address"),
            "{line}"
        );
    }

    /// A socket without events so far, and its address.
    fn listening() -> (Listening, SocketAddr) {
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let address = listening.address.tcp().unwrap();
        (listening, address)
    }

    fn peer(accepted: io::Result<Option<(TcpStream, Peer)>>) -> Option<Peer> {
        accepted.unwrap().map(|(_, peer)| peer)
    }

    #[test]
    fn clients_are_accepted_until_the_backlog_is_empty() {
        let (mut listening, address) = listening();
        let now = Instant::now();
        let client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(peer(listening.accept(now)), None, "no event has come");
        assert_eq!(listening.next_try(now), None);
        listening.is_ready = true;
        assert_eq!(listening.next_try(now), Some(Duration::ZERO));
        assert_eq!(
            peer(listening.accept(now)),
            Some(Peer::Tcp(client.local_addr().unwrap()))
        );
        assert!(listening.is_ready, "there may be more");
        assert_eq!(peer(listening.accept(now)), None);
        assert!(!listening.is_ready);
        assert_eq!(listening.next_try(now), None);
    }

    #[test]
    fn clients_are_accepted_again_after_the_pause() {
        let (mut listening, address) = listening();
        let now = Instant::now();
        let client = std::net::TcpStream::connect(address).unwrap();
        listening.is_ready = true;
        listening.paused_until = Some(now + PAUSE);
        assert_eq!(peer(listening.accept(now)), None);
        assert_eq!(listening.next_try(now), Some(PAUSE));
        assert_eq!(listening.next_try(now + PAUSE), Some(Duration::ZERO));
        assert_eq!(
            peer(listening.accept(now + PAUSE)),
            Some(Peer::Tcp(client.local_addr().unwrap()))
        );
        assert_eq!(peer(listening.accept(now + PAUSE)), None);
        assert_eq!(listening.paused_until, None, "the next shortage is logged");
    }
}
