//! Why an answer could not be had, in words for an operator.

use std::net::SocketAddr;
use std::time::Duration;

use super::PORT;

/// Why an answer could not be had. Its text is the end of a sentence, such as `the name server 192.0.2.1 …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No answer came, in so long a time.
    Timeout { server: Server, waited: Duration },
    /// Nobody listens at this address, or no way leads there.
    Unreachable { server: Server },
    /// What came is no answer to the question.
    Malformed { server: Server },
    /// It does not want to answer.
    Refused { server: Server },
    /// It said that it has failed, with this code.
    Failed { server: Server, code: &'static str },
    /// It is said to be an authority of the name, and it is not.
    Lame { server: Server, name: String },
    /// The aliases of the name do not end.
    Loop { name: String },
    /// Nobody is named as an authority of the name, or none of these has an address.
    NoServers { name: String },
    /// DNS has no such names.
    BadName { name: String },
    /// The system has no socket left.
    NoSocket,
    /// The system has no random bits.
    NoRandom,
}

/// A name server, and how it was spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub address: SocketAddr,
    pub over_tcp: bool,
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.address.port() {
            PORT => write!(f, "the name server {}", self.address.ip())?,
            _ => write!(f, "the name server {}", self.address)?,
        }
        f.write_str(if self.over_tcp { ", asked over TCP," } else { "" })
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Timeout { server, waited } => {
                write!(f, "{server} did not answer within {:.1} seconds", waited.as_secs_f32())
            }
            Self::Unreachable { server } => write!(f, "{server} cannot be reached"),
            Self::Malformed { server } => write!(f, "{server} sent what is no answer to the question"),
            Self::Refused { server } => write!(f, "{server} refuses to answer"),
            Self::Failed { server, code } => write!(f, "{server} failed to answer ({code})"),
            Self::Lame { server, name } => write!(f, "{server} is not an authority of {name}"),
            Self::Loop { name } => {
                write!(f, "the CNAME records of {name} lead in a circle, or to more than 8 names")
            }
            Self::NoServers { name } => write!(f, "no name server with an address is named for {name}"),
            Self::BadName { name } => write!(f, "{name} cannot be a name in DNS"),
            Self::NoSocket => f.write_str("the system allows no more sockets (ulimit -n)"),
            Self::NoRandom => f.write_str("the system gives no random bits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_named_without_the_usual_port() {
        let server = |address: &str, over_tcp| Server { address: address.parse().unwrap(), over_tcp };
        let waited = Duration::from_millis(6_040);
        let timeout = Trouble::Timeout { server: server("192.0.2.1:53", false), waited };
        assert_eq!(timeout.to_string(), "the name server 192.0.2.1 did not answer within 6.0 seconds");
        let refused = Trouble::Refused { server: server("[2001:db8::1]:5353", true) };
        assert_eq!(
            refused.to_string(),
            "the name server [2001:db8::1]:5353, asked over TCP, refuses to answer"
        );
    }
}
