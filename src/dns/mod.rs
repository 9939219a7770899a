//! Asks DNS which records a name has. Knows nothing of the domains of this service.
//!
//! Every byte of a response is hostile. `message.rs` reads it, `answer.rs` is what is kept of it, `exchange.rs`
//! gets it over UDP or TCP, `servers.rs` goes on to the next server where one fails, `authority.rs` finds those
//! that know a name at first hand, and `trouble.rs` says what went wrong.

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

/// How long a verification takes at the most.
const WHOLE: Duration = Duration::from_secs(15);
/// How long a server has for its answer at first. In the next round it has twice as long.
const PATIENCE: Duration = Duration::from_secs(2);
/// The port of name servers.
const PORT: u16 = 53;

/// Whom to ask, and how long to wait.
pub(crate) struct Dns {
    /// The server that is asked everything, if one is given. It need not be an authority.
    given: Option<SocketAddr>,
    /// The resolvers of the system; `None`: those of /etc/resolv.conf, read anew each time.
    system: Option<Vec<SocketAddr>>,
    /// The port of the authoritative servers.
    port: u16,
    whole: Duration,
    patience: Duration,
}

impl Dns {
    /// Asks the given resolver, and believes it. Without one, asks the system's resolver who the authorities of a
    /// name are, and then asks these.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        Self { given: resolver, system: None, port: PORT, whole: WHOLE, patience: PATIENCE }
    }

    /// Starts the clock for the questions of one verification: 15 seconds for all of them together.
    pub fn begin(&self) -> Inquiry<'_> {
        self.begin_within(self.whole)
    }

    /// Starts the clock for some questions beside a verification: a quarter of its time, so that the results of
    /// both are there within 20 seconds.
    pub fn begin_short(&self) -> Inquiry<'_> {
        self.begin_within(self.whole / 4)
    }

    fn begin_within(&self, most: Duration) -> Inquiry<'_> {
        let since = Instant::now();
        Inquiry { dns: self, since, until: since + most }
    }
}

/// Questions that belong together, and have one deadline.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    dns: &'a Dns,
    since: Instant,
    until: Instant,
}

impl Inquiry<'_> {
    /// The resolvers: they find out what they do not know.
    pub fn resolvers(self) -> Servers {
        let system = || self.dns.system.clone().unwrap_or_else(authority::resolvers_of_the_system);
        let addresses = self.dns.given.map_or_else(system, |given| vec![given]);
        self.servers(addresses, true)
    }

    fn servers(self, addresses: Vec<SocketAddr>, resolve: bool) -> Servers {
        Servers { addresses, resolve, patience: self.dns.patience, until: self.until }
    }
}
