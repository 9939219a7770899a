//! Why DNS gave no answer, in words for an operator.

use std::net::SocketAddr;

/// The port of name servers.
pub(super) const PORT: u16 = 53;

/// Why DNS gave no answer. Its text ends a sentence, such as `the name server 192.0.2.1 …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsError {
    /// A name server gave no usable response: which one, and why.
    Server(String),
    /// The resolver or the system cannot be used as it is: what is wrong with it.
    Setup(String),
    /// The aliases of the name form a circle or are too many.
    Loop { name: String },
    /// The name has no authorities, or none with an address.
    NoServers { name: String },
    /// The name is not valid in DNS.
    BadName { name: String },
}

impl DnsError {
    /// What a name server did, such as ` refuses to answer`.
    pub(super) fn of(server: SocketAddr, what: &str) -> Self {
        Self::Server(named(server) + what)
    }
}

/// A name server, without the usual port.
pub(super) fn named(server: SocketAddr) -> String {
    match server.port() {
        PORT => format!("the name server {}", server.ip()),
        _ => format!("the name server {server}"),
    }
}

impl std::fmt::Display for DnsError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Server(what) | Self::Setup(what) => f.write_str(what),
            Self::Loop { name } => {
                write!(f, "the CNAME records of {name} lead in a circle, or to more than 8 names")
            }
            Self::NoServers { name } => write!(f, "no name server with an address is named for {name}"),
            Self::BadName { name } => write!(f, "{name} cannot be a name in DNS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_named_without_the_usual_port() {
        let refusal = |server: &str| DnsError::of(server.parse().unwrap(), " refuses to answer").to_string();
        assert_eq!(refusal("192.0.2.1:53"), "the name server 192.0.2.1 refuses to answer");
        assert_eq!(refusal("[2001:db8::1]:5353"), "the name server [2001:db8::1]:5353 refuses to answer");
    }
}
