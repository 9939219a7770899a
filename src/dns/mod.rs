//! Asks DNS which records a name has. Knows nothing of the domains of this service.
//!
//! Every byte of a response may be hostile. `exchange.rs` gets it over UDP or TCP, `message.rs` decodes it, and
//! `answer.rs` is what is kept of it. `servers.rs` tries the next server if one fails, `authority.rs` finds the
//! authoritative servers of a name, and `trouble.rs` says what went wrong.

mod answer;
mod authority;
mod exchange;
mod message;
mod servers;
mod trouble;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod inquiry_tests;
#[cfg(test)]
pub(crate) mod tests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) use answer::{Answer, Data};
pub(crate) use servers::Servers;
/// The type of a record, such as `A` or `CNAME`.
pub(crate) use simple_dns::TYPE as Kind;
pub(crate) use trouble::Trouble;

/// The longest that one verification may take.
const WHOLE: Duration = Duration::from_secs(15);
/// How long to wait for a server in the first round; twice as long in the second.
const PATIENCE: Duration = Duration::from_secs(2);
/// The port of name servers.
const PORT: u16 = 53;

/// Whom to ask, and how long to wait.
pub(crate) struct Dns {
    /// The server to ask everything, if one is given. It need not be an authority.
    given: Option<SocketAddr>,
    /// The resolvers of the system; `None`: those in /etc/resolv.conf, read again each time.
    system: Option<Vec<SocketAddr>>,
    /// The port of the authoritative servers.
    port: u16,
    whole: Duration,
    patience: Duration,
}

impl Dns {
    /// Asks the given resolver and believes it. Without one, it asks the system's resolver for the authorities of
    /// a name, and then asks these.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        Self { given: resolver, system: None, port: PORT, whole: WHOLE, patience: PATIENCE }
    }

    /// Starts the clock for the questions of one verification: 15 seconds for all of them together.
    pub fn begin(&self) -> Inquiry<'_> {
        self.begin_within(self.whole)
    }

    /// Starts the clock for a few questions alongside a verification: a quarter of its time, so that both have
    /// finished within 20 seconds.
    pub fn begin_short(&self) -> Inquiry<'_> {
        self.begin_within(self.whole / 4)
    }

    fn begin_within(&self, most: Duration) -> Inquiry<'_> {
        let since = Instant::now();
        Inquiry { dns: self, since, until: since + most }
    }
}

/// Questions that belong together and share one deadline.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    dns: &'a Dns,
    since: Instant,
    until: Instant,
}

impl Inquiry<'_> {
    /// The resolvers, which query others for what they do not know.
    pub fn resolvers(self) -> Servers {
        let system = || self.dns.system.clone().unwrap_or_else(authority::resolvers_of_the_system);
        let addresses = self.dns.given.map_or_else(system, |given| vec![given]);
        self.servers(addresses, true)
    }

    fn servers(self, addresses: Vec<SocketAddr>, resolve: bool) -> Servers {
        Servers { addresses, resolve, patience: self.dns.patience, until: self.until }
    }
}
