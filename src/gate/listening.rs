//! A socket that listens but is not served yet: bound here, or passed by a supervisor.

use std::io::{self, ErrorKind as Os};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::{Address, Listen};
use crate::error::{Error, ErrorKind};
use crate::gate::socket_file::{BACKLOG, SocketFile};
use crate::gate::stream::{Peer, Stream};

/// A listening socket and its origin.
pub struct Listening {
    /// Dropped before the socket, so that nobody finds the file of a closed socket.
    _file: Option<SocketFile>,
    socket: ListeningSocket,
    address: Address,
    is_passed: bool,
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
                let listening = Self::new(socket, false)
                    .map_err(|error| Error::io(format!("cannot listen on unix:{}", path.display()), error))?;
                Ok(Self { _file: Some(file), address: Address::Unix(path.clone()), ..listening })
            }
            Listen::Socket(passed) => Self::passed(passed),
        }
    }

    fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restarted service gets its port at once, even if old connections linger.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG as i32)?;
        Self::new(socket, false)
    }

    /// The first of a host's addresses that this machine has.
    fn host(host: &str, port: u16) -> Result<Self, Error> {
        let found = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_else(|_| Vec::new());
        let unknown = format!("cannot listen on {host}:{port}: the host {host} has no address");
        let mut reason = Error::new(ErrorKind::AddressUnavailable, unknown);
        for (i, address) in found.into_iter().enumerate() {
            match Self::tcp(address) {
                Ok(listening) => return Ok(listening),
                Err(error) if error.kind() != Os::AddrNotAvailable => {
                    return Err(cannot(address, error));
                }
                Err(error) if i == 0 => reason = cannot(address, error),
                Err(_) => {}
            }
        }
        Err(reason)
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
        if socket.r#type().ok() != Some(Type::STREAM) {
            return Err(cannot("it is not a stream socket"));
        }
        if socket.peer_addr().is_ok() {
            return Err(cannot("it is a connection"));
        }
        if !socket.is_listener().unwrap_or(true) {
            return Err(cannot("it does not listen"));
        }
        Self::new(socket, true).map_err(|error| cannot(&error.to_string()))
    }

    fn new(socket: Socket, is_passed: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (socket, address) = if socket.local_addr()?.is_unix() {
            let listener = UnixListener::from(OwnedFd::from(socket));
            let address = Address::Unix(name(&listener.local_addr()?));
            (ListeningSocket::Unix(mio::net::UnixListener::from_std(listener)), address)
        } else {
            let listener = TcpListener::from(socket);
            let address = Address::Tcp(listener.local_addr()?);
            (ListeningSocket::Tcp(mio::net::TcpListener::from_std(listener)), address)
        };
        Ok(Self { _file: None, socket, address, is_passed })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether a supervisor keeps the socket open, so that the next service accepts the clients that wait.
    pub fn is_passed(&self) -> bool {
        self.is_passed
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListeningSocket::Tcp(socket) => registry.register(socket, token, Interest::READABLE),
            ListeningSocket::Unix(socket) => registry.register(socket, token, Interest::READABLE),
        }
    }

    pub(super) fn accept(&self) -> io::Result<(Stream, Peer)> {
        match &self.socket {
            ListeningSocket::Tcp(socket) => {
                socket.accept().map(|(stream, peer)| (Stream::Tcp(stream), Peer::Tcp(peer)))
            }
            ListeningSocket::Unix(socket) => {
                socket.accept().map(|(stream, _)| (Stream::Unix(stream), Peer::Unix))
            }
        }
    }
}

/// The path of a Unix socket; for a name without a file, with `@` at its beginning.
fn name(address: &std::os::unix::net::SocketAddr) -> std::path::PathBuf {
    address.as_pathname().unwrap_or(Path::new("@")).to_owned()
}

/// The error for an address that cannot be bound.
fn cannot(address: SocketAddr, error: io::Error) -> Error {
    let (kind, why) = match error.kind() {
        Os::AddrInUse => (ErrorKind::AddressInUse, "the address is in use".to_owned()),
        Os::AddrNotAvailable => {
            (ErrorKind::AddressUnavailable, "this machine does not have the address".to_owned())
        }
        Os::PermissionDenied => {
            (ErrorKind::AddressUnavailable, "only a privileged program can use a port below 1024".to_owned())
        }
        _ => (ErrorKind::of_io(&error), error.to_string()),
    };
    Error::new(kind, format!("cannot listen on {address}: {why}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
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
        let address = listening.address().tcp().unwrap();
        let line = format!("cannot listen on {address}: the address is in use");
        assert_eq!(refused(&address.into()), (ErrorKind::AddressInUse, line));
        // Reserved for documentation (RFC 5737).
        let line = "cannot listen on 192.0.2.1:80: this machine does not have the address".to_owned();
        assert_eq!(refused(&([192, 0, 2, 1], 80).into()), (ErrorKind::AddressUnavailable, line));
        let privileged = cannot(([0, 0, 0, 0], 80).into(), Os::PermissionDenied.into());
        assert_eq!(privileged.kind(), ErrorKind::AddressUnavailable);
    }

    #[test]
    fn host_is_looked_up() {
        let listening = Listening::bind(&Listen::Host("localhost".to_owned(), 0)).unwrap();
        assert!(listening.address().tcp().unwrap().ip().is_loopback());
        // A name that never exists (RFC 6761, section 6.4).
        let (kind, line) = refused(&Listen::Host("nowhere.invalid".to_owned(), 80));
        assert_eq!(kind, ErrorKind::AddressUnavailable);
        assert!(line.ends_with(": the host nowhere.invalid has no address"), "{line}");
    }

    #[test]
    fn passed_sockets_are_known_by_their_kind() {
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = Address::Tcp(tcp.local_addr().unwrap());
        let listening = Listening::bind(&passed(tcp)).unwrap();
        assert_eq!((listening.address(), listening.is_passed()), (&address, true));
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let listening = Listening::bind(&passed(UnixListener::bind(&path).unwrap())).unwrap();
        assert_eq!(listening.address(), &Address::Unix(path.clone()));
        drop(listening);
        assert!(path.exists(), "the file is the supervisor's");
    }

    #[test]
    fn passed_things_that_do_not_listen_are_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let datagrams = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let bound = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        for (listen, why) in [
            (passed(file), "it is not a stream socket"),
            (passed(datagrams), "it is not a stream socket"),
            (passed(one), "it is a connection"),
            (passed(bound), "it does not listen"),
        ] {
            let (kind, line) = refused(&listen);
            assert_eq!(kind, ErrorKind::SocketUnusable, "{line}");
            assert!(line.ends_with(why), "{line}");
        }
    }

    #[test]
    fn address_that_this_machine_lacks_and_one_in_use_are_told_apart() {
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
        assert!(line.contains(&format!("192.0.2.1:{port}")) && !line.contains("has no address"), "{line}");
    }
}
