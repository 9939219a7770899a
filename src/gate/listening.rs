//! A socket that listens and is not yet served: bound here, or passed by a supervisor.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::{Address, Listen};
use crate::gate::listener::BACKLOG;
use crate::gate::socket_file::SocketFile;
use crate::gate::stream::{Peer, Stream};

/// A listening socket, and how it came to be.
pub struct Listening {
    /// Before the socket: nobody finds the file of a socket that is closed.
    file: Option<SocketFile>,
    socket: ListeningSocket,
    address: Address,
    is_passed: bool,
}

enum ListeningSocket {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener),
}

impl Listening {
    /// Listens, so that clients can connect; they are let in once a gate runs.
    ///
    /// # Errors
    /// One plain line that names the address.
    pub fn bind(listen: &Listen) -> Result<Self, String> {
        match listen {
            Listen::Tcp(address) => Self::tcp(*address).map_err(|error| cannot(*address, &error)),
            Listen::Host(host, port) => Self::host(host, *port),
            Listen::Unix(path) => {
                let (socket, file) = SocketFile::listen(path)?;
                let listening = Self::new(socket, false)
                    .map_err(|error| format!("cannot listen on unix:{}: {error}", path.display()))?;
                Ok(Self { file: Some(file), address: Address::Unix(path.clone()), ..listening })
            }
            Listen::Socket(passed) => Self::passed(passed),
        }
    }

    fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A service that is started again takes its port at once, whatever old connections linger.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG as i32)?;
        Self::new(socket, false)
    }

    /// The first of a host's addresses that this machine has.
    fn host(host: &str, port: u16) -> Result<Self, String> {
        let found = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_else(|_| Vec::new());
        let mut reason = format!("cannot listen on {host}:{port}: no address is found for the host {host}");
        for (i, address) in found.into_iter().enumerate() {
            match Self::tcp(address) {
                Ok(listening) => return Ok(listening),
                Err(error) if error.kind() != ErrorKind::AddrNotAvailable => {
                    return Err(cannot(address, &error));
                }
                Err(error) if i == 0 => reason = cannot(address, &error),
                Err(_) => {}
            }
        }
        Err(reason)
    }

    fn passed(passed: &OwnedFd) -> Result<Self, String> {
        let cannot = |what: &str| format!("cannot listen on the socket that was passed: {what}");
        let socket = passed
            .try_clone()
            .map(Socket::from)
            .map_err(|error| cannot(&format!("it is not open: {error}")))?;
        if socket.r#type().ok() != Some(Type::STREAM) {
            return Err(cannot("it is no stream socket"));
        }
        if socket.peer_addr().is_ok() {
            return Err(cannot("it is a connection (Accept= must be no)"));
        }
        if !socket.is_listener().unwrap_or(true) {
            return Err(cannot("it does not listen (systemd: ListenStream= in a socket unit)"));
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
        Ok(Self { file: None, socket, address, is_passed })
    }

    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether a supervisor keeps the socket open, so that whoever waits at it is served by the next service.
    pub fn is_passed(&self) -> bool {
        self.is_passed
    }

    /// Whether it has a file of its own, which may be removed by others.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether its file was removed or replaced, so that nobody can connect any more.
    pub(super) fn is_lost(&self) -> bool {
        self.file.as_ref().is_some_and(SocketFile::is_lost)
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

/// Why an address cannot be had, and what to do.
fn cannot(address: SocketAddr, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::AddrInUse => {
            let port = address.port();
            format!("the address is in use; end the program that has port {port}, or choose another port")
        }
        ErrorKind::AddrNotAvailable => {
            let all = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
            format!("this machine has no such address; {all} means all that it has")
        }
        ErrorKind::PermissionDenied => {
            "only a privileged program may have such a port; choose one from 1024 on, or have a supervisor pass \
             the socket"
                .to_owned()
        }
        _ => error.to_string(),
    };
    format!("cannot listen on {address}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::sync::Arc;

    fn refused(listen: &Listen) -> String {
        Listening::bind(listen).err().unwrap()
    }

    fn passed(socket: impl Into<OwnedFd>) -> Listen {
        Listen::Socket(Arc::new(socket.into()))
    }

    #[test]
    fn address_in_use_is_named() {
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let address = listening.address().tcp().unwrap();
        let refusal = refused(&address.into());
        assert!(
            refusal.starts_with(&format!("cannot listen on {address}: the address is in use")),
            "{refusal}"
        );
    }

    #[test]
    fn address_of_another_machine_is_named() {
        // Reserved for documentation (RFC 5737).
        let refusal = refused(&([192, 0, 2, 1], 80).into());
        assert!(refusal.starts_with("cannot listen on 192.0.2.1:80: this machine has no such"), "{refusal}");
    }

    #[test]
    fn refusals_say_what_to_do() {
        let why = |kind: ErrorKind| cannot(([0, 0, 0, 0], 80).into(), &kind.into());
        assert!(why(ErrorKind::PermissionDenied).contains("choose one from 1024 on"));
        assert!(why(ErrorKind::AddrInUse).contains("choose another port"));
    }

    #[test]
    fn host_is_looked_up() {
        let listening = Listening::bind(&Listen::Host("localhost".to_owned(), 0)).unwrap();
        assert!(listening.address().tcp().unwrap().ip().is_loopback());
        // A name that never exists (RFC 6761, section 6.4).
        let refusal = refused(&Listen::Host("nowhere.invalid".to_owned(), 80));
        assert!(refusal.ends_with("no address is found for the host nowhere.invalid"), "{refusal}");
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
        for refusal in [refused(&passed(file)), refused(&passed(datagrams))] {
            assert!(refusal.ends_with("it is no stream socket"), "{refusal}");
        }
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(refused(&passed(one)).contains("it is a connection"));
        let bound = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        assert!(refused(&passed(bound)).contains("it does not listen"));
    }
}
