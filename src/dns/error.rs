//! Why DNS gave no answer, in words for an operator.

use std::net::SocketAddr;
use std::time::Duration;

/// The port of name servers.
pub(super) const PORT: u16 = 53;

/// Why DNS gave no answer. Its text ends a sentence, such as `the name server 192.0.2.1 …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnsError {
    /// No answer came within this time.
    Timeout { server: NameServer, waited: Duration },
    /// Nothing listens at this address, or there is no route to it.
    Unreachable { server: NameServer },
    /// The server sent something that does not answer the question.
    Malformed { server: NameServer },
    /// The server refuses to answer.
    Refused { server: NameServer },
    /// The server was asked as a resolver, and knows nothing but its own zones.
    NotRecursive { server: NameServer },
    /// The server reports a failure with this code.
    Failed { server: NameServer, code: &'static str },
    /// The server is listed as an authority for the name but is not one.
    Lame { server: NameServer, name: String },
    /// The aliases of the name form a circle or are too many.
    Loop { name: String },
    /// The name has no authorities, or none with an address.
    NoServers { name: String },
    /// The name is not valid in DNS.
    BadName { name: String },
    /// The system lacks something: the rest of the sentence says what.
    System(&'static str),
}

/// A name server, and whether it was asked over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameServer {
    pub address: SocketAddr,
    pub over_tcp: bool,
}

impl std::fmt::Display for NameServer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.address.port() {
            PORT => write!(f, "the name server {}", self.address.ip())?,
            _ => write!(f, "the name server {}", self.address)?,
        }
        f.write_str(if self.over_tcp { ", asked over TCP," } else { "" })
    }
}

impl std::fmt::Display for DnsError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Timeout { server, waited } => {
                write!(f, "{server} did not answer within {:.1} seconds", waited.as_secs_f32())
            }
            Self::Unreachable { server } => write!(f, "{server} cannot be reached"),
            Self::Malformed { server } => {
                write!(f, "{server} sent a response that does not answer the question")
            }
            Self::Refused { server } => write!(f, "{server} refuses to answer"),
            Self::NotRecursive { server } => {
                write!(f, "{server} does not recurse, as a resolver must; it knows its own zones only")
            }
            Self::Failed { server, code } => write!(f, "{server} failed to answer ({code})"),
            Self::Lame { server, name } => write!(f, "{server} is not an authority of {name}"),
            Self::Loop { name } => {
                write!(f, "the CNAME records of {name} lead in a circle, or to more than 8 names")
            }
            Self::NoServers { name } => write!(f, "no name server with an address is named for {name}"),
            Self::BadName { name } => write!(f, "{name} cannot be a name in DNS"),
            Self::System(lacks) => write!(f, "the system {lacks}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_named_without_the_usual_port() {
        let server = |address: &str, over_tcp| NameServer { address: address.parse().unwrap(), over_tcp };
        let waited = Duration::from_millis(6_040);
        let timeout = DnsError::Timeout { server: server("192.0.2.1:53", false), waited };
        assert_eq!(timeout.to_string(), "the name server 192.0.2.1 did not answer within 6.0 seconds");
        let refused = DnsError::Refused { server: server("[2001:db8::1]:5353", true) };
        assert_eq!(
            refused.to_string(),
            "the name server [2001:db8::1]:5353, asked over TCP, refuses to answer"
        );
    }
}
