//! Failures of DNS, in words for an operator.

use std::net::SocketAddr;

/// The port of name servers.
pub(super) const PORT: u16 = 53;

/// The reason why there is no answer, as the end of a sentence, such as `the name server 192.0.2.1 refuses to answer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DnsError(pub(super) String);

impl DnsError {
    /// Creates the error of a name server. `what` describes its behaviour, such as ` refuses to answer`. The default
    /// port is omitted.
    pub(super) fn of(server: SocketAddr, what: &str) -> Self {
        match server.port() {
            PORT => Self(format!("the name server {}{what}", server.ip())),
            _ => Self(format!("the name server {server}{what}")),
        }
    }

    /// Creates the error for a zone without authoritative servers, or without an address of one.
    pub(super) fn no_servers(zone: &str) -> Self {
        Self(format!(
            "no name server with an address is named for {zone}"
        ))
    }
}

impl std::fmt::Display for DnsError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_named_without_the_usual_port() {
        let refusal =
            |server: &str| DnsError::of(server.parse().unwrap(), " refuses to answer").to_string();
        assert_eq!(
            refusal("192.0.2.1:53"),
            "the name server 192.0.2.1 refuses to answer"
        );
        assert_eq!(
            refusal("[2001:db8::1]:5353"),
            "the name server [2001:db8::1]:5353 refuses to answer"
        );
    }
}
