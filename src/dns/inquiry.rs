//! Whom to ask, and the deadline that the questions of one inquiry share.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::error::PORT;
use super::resolv_conf::resolvers_of_the_system;
use super::servers::NameServers;

/// The longest that one verification may take.
const WHOLE: Duration = Duration::from_secs(15);
/// How long to wait for a server in the first round; twice as long in the second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whom to ask, and how long to wait.
pub(crate) struct Dns {
    /// The given resolver, or those of the system.
    pub(super) resolvers: Vec<SocketAddr>,
    /// Whether the resolver is given. It is asked everything, and need not be an authority.
    pub(super) is_given: bool,
    /// The port of the authoritative servers.
    pub(super) port: u16,
    pub(super) whole: Duration,
    pub(super) patience: Duration,
}

impl Dns {
    /// Asks the given resolver and believes it. Without one, it asks the system's resolver for the authorities of
    /// a name, and then asks these.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        let resolvers = resolver.map_or_else(resolvers_of_the_system, |given| vec![given]);
        let is_given = resolver.is_some();
        Self { resolvers, is_given, port: PORT, whole: WHOLE, patience: PATIENCE }
    }

    /// Starts the clock for the questions of one verification: 15 seconds for all of them together.
    pub fn begin(&self) -> Inquiry<'_> {
        let since = Instant::now();
        Inquiry { dns: self, since, until: since + self.whole }
    }

    /// Starts the clock for a few questions alongside a verification: a quarter of its time, so that both have
    /// finished within 20 seconds.
    pub fn begin_short(&self) -> Inquiry<'_> {
        let whole = self.begin();
        Inquiry { until: whole.since + self.whole / 4, ..whole }
    }
}

/// Questions that belong together and share one deadline.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    pub(super) dns: &'a Dns,
    pub(super) since: Instant,
    pub(super) until: Instant,
}

impl Inquiry<'_> {
    /// The resolvers, which query others for what they do not know.
    pub fn resolvers(self) -> NameServers {
        self.servers(self.dns.resolvers.clone(), true)
    }

    pub(super) fn servers(self, addresses: Vec<SocketAddr>, resolve: bool) -> NameServers {
        NameServers { addresses, resolve, patience: self.dns.patience, until: self.until }
    }
}
