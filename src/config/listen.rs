//! Where to listen: as it is wished, and as it is.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// What stands before the path of a Unix socket.
const UNIX: &str = "unix:";

/// Where the service is to listen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Listen {
    /// An address of this machine, such as `127.0.0.1:8080`; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A host such as `localhost`, which is looked up at the start, and a port. Of its addresses the first
    /// counts that this machine has.
    Host(String, u16),
    /// A Unix socket with this path. Its file has mode 0660 and is removed at the end.
    Unix(PathBuf),
    /// A TCP or Unix socket that listens already, as a supervisor passes it. Whoever waits at it when the
    /// service ends is left to the next one.
    Socket(Arc<OwnedFd>),
}

impl Listen {
    /// Reads `HOST:PORT` or `unix:PATH`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return (!path.is_empty()).then(|| Self::Unix(path.into()));
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Tcp(address));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        let is_name = !host.is_empty() && host.bytes().all(is_name_byte);
        is_name.then_some(Self::Host(host.to_owned(), port.parse().ok()?))
    }
}

impl Default for Listen {
    /// `127.0.0.1:8080`.
    fn default() -> Self {
        Self::Tcp(([127, 0, 0, 1], 8080).into())
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for Listen {
    fn from(address: (I, u16)) -> Self {
        Self::Tcp(address.into())
    }
}

/// Where the service listens. It is printed as `http://127.0.0.1:8080` or `unix:/run/petstore/http.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The address with the port that was taken.
    Tcp(SocketAddr),
    /// The path of a Unix socket. `@` begins a name in Linux's abstract namespace, which has no file.
    Unix(PathBuf),
}

impl Address {
    /// The address and the port; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// What a client on the same machine calls, such as `http://localhost:8080`. A client of a Unix socket
    /// needs its path beside it.
    pub fn local_url(&self) -> String {
        match self {
            Self::Tcp(address) if address.ip().is_unspecified() => {
                format!("http://localhost:{}", address.port())
            }
            Self::Tcp(address) => format!("http://{address}"),
            Self::Unix(_) => "http://localhost".to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hosts_and_paths_are_told_apart() {
        let parsed = |text| format!("{:?}", Listen::parse(text).unwrap());
        assert_eq!(parsed("127.0.0.1:0"), "Tcp(127.0.0.1:0)");
        assert_eq!(parsed("[::1]:80"), "Tcp([::1]:80)");
        assert_eq!(parsed("localhost:80"), r#"Host("localhost", 80)"#);
        assert_eq!(parsed("unix:/a b:1"), r#"Unix("/a b:1")"#);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "8080", "localhost", ":80", "::1:80", "localhost:99999", "http://h:80", "unix:"] {
            assert!(Listen::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn local_url_can_be_called() {
        let url = |address: [u8; 4]| Address::Tcp((address, 8080).into()).local_url();
        assert_eq!(url([0, 0, 0, 0]), "http://localhost:8080");
        assert_eq!(url([10, 0, 0, 1]), "http://10.0.0.1:8080");
        assert_eq!(Address::Unix("/s".into()).local_url(), "http://localhost");
    }
}
