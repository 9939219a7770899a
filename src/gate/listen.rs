//! The address to listen on, as asked for, and the actual address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// The prefix of the path of a Unix socket.
const UNIX: &str = "unix:";

/// The address to listen on.
///
/// ```
/// use petstore_gate::Listen;
///
/// let any_port = Listen::from(([127, 0, 0, 1], 0));
/// let socket = Listen::Unix("/run/http.sock".into());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Listen {
    /// An address of this machine, such as `127.0.0.1:8080`; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A host such as `localhost`, and a port. At the start, the service resolves the host, and listens on the first of
    /// its addresses that belongs to this machine.
    Host(String, u16),
    /// A Unix socket with this path. Its file has mode 0660 and is removed when the service ends. A relative path stays
    /// relative, because an absolute one may be too long for a socket: do not change the current folder while the
    /// service runs.
    Unix(PathBuf),
    /// A TCP or Unix socket that already listens, such as one that a supervisor passes. When the service ends, clients
    /// that it has not accepted yet wait for the next service.
    Socket(Arc<OwnedFd>),
}

impl Listen {
    /// Reads `HOST:PORT`, `unix:PATH`, or a port of 127.0.0.1 such as `8080` or `:8080`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return (!path.is_empty()).then(|| Self::Unix(path.into()));
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Tcp(address));
        }
        if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
            return Some(([127, 0, 0, 1], port).into());
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        let is_name = !host.is_empty() && host.bytes().all(is_name_byte);
        is_name.then_some(Self::Host(host.to_owned(), port.parse().ok()?))
    }

    /// Returns the text that [`Listen::parse`] reads as this address; `None` for a socket that was passed, and for a
    /// path that is not UTF-8.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Tcp(address) => Some(address.to_string()),
            Self::Host(host, port) => Some(format!("{host}:{port}")),
            Self::Unix(path) => path.to_str().map(|path| format!("{UNIX}{path}")),
            Self::Socket(_) => None,
        }
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

/// The address that a running service listens on. It prints as `http://127.0.0.1:8080` or
/// `unix:/run/petstore/http.sock`.
///
/// ```
/// let address = petstore_gate::Address::Tcp(([0, 0, 0, 0], 8080).into());
/// assert_eq!(address.to_string(), "http://0.0.0.0:8080");
/// assert_eq!(address.local_url(), "http://localhost:8080");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// The IP address and the port, which is the actual one if the configuration has port 0.
    Tcp(SocketAddr),
    /// The path of a Unix socket. A path that begins with `@` is a name in Linux's abstract namespace, without a
    /// file.
    Unix(PathBuf),
}

impl Address {
    /// The IP address and the port; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The URL for a client on the same machine, such as `http://localhost:8080`. A client of a Unix socket also
    /// needs its path.
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
    fn addresses_hosts_and_paths_are_recognised() {
        let parsed = |text| format!("{:?}", Listen::parse(text).unwrap());
        assert_eq!(parsed("127.0.0.1:0"), "Tcp(127.0.0.1:0)");
        assert_eq!(parsed("[::1]:80"), "Tcp([::1]:80)");
        assert_eq!(parsed("localhost:80"), r#"Host("localhost", 80)"#);
        assert_eq!(
            [parsed("80"), parsed(":80")],
            ["Tcp(127.0.0.1:80)", "Tcp(127.0.0.1:80)"]
        );
        assert_eq!(parsed("unix:/a b:1"), r#"Unix("/a b:1")"#);
    }

    #[test]
    fn malformed_address_is_refused() {
        for text in [
            "",
            ":",
            "99999",
            "localhost",
            "::1:80",
            "localhost:99999",
            "http://h:80",
            "unix:",
        ] {
            assert!(Listen::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn local_url_reaches_the_service() {
        let url = |address: [u8; 4]| Address::Tcp((address, 8080).into()).local_url();
        assert_eq!(url([0, 0, 0, 0]), "http://localhost:8080");
        assert_eq!(url([10, 0, 0, 1]), "http://10.0.0.1:8080");
        assert_eq!(Address::Unix("/s".into()).local_url(), "http://localhost");
    }
}
