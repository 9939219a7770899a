//! The servers to ask: the resolvers, or the authoritative servers of the zone that contains a name.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::answer::AnswerRecord;
use super::error::PORT;
use super::resolv_conf::resolvers_of_the_system;
use super::servers::NameServers;
use super::{DnsError, RecordType, with_parents};

/// The longest that all questions together may take.
const WHOLE: Duration = Duration::from_secs(20);
/// How long to wait for a server in the first round; twice as long in the second.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most name servers of a zone that are looked up, and the most addresses that are asked.
const MAX_SERVERS: usize = 8;

/// Questions that belong together and share one deadline.
pub(crate) struct Dns {
    /// The given resolver, or those of the system.
    pub(super) resolvers: Vec<SocketAddr>,
    /// The resolver is given: it is asked everything, and need not be an authority.
    pub(super) is_given: bool,
    /// The port of the authoritative servers.
    pub(super) port: u16,
    pub(super) patience: Duration,
    pub(super) until: Instant,
}

impl Dns {
    /// Starts the clock: 20 seconds for all questions together. A given resolver is asked and believed. Without one,
    /// the system's resolver is asked for the authorities of a name, and then these are asked.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        let resolvers = resolver.map_or_else(resolvers_of_the_system, |given| vec![given]);
        let (is_given, until) = (resolver.is_some(), Instant::now() + WHOLE);
        Self { resolvers, is_given, port: PORT, patience: PATIENCE, until }
    }

    /// The resolvers, which query others for what they do not know.
    pub fn resolvers(&self) -> NameServers {
        self.servers(self.resolvers.clone(), true)
    }

    pub(super) fn servers(&self, addresses: Vec<SocketAddr>, resolve: bool) -> NameServers {
        NameServers { addresses, resolve, patience: self.patience, until: self.until }
    }

    /// The authoritative servers of the name's zone, or the given resolver if there is one.
    ///
    /// # Errors
    /// If they cannot be found.
    pub fn authorities(&self, name: &str) -> Result<NameServers, DnsError> {
        let mut resolvers = self.resolvers();
        if self.is_given {
            return Ok(resolvers);
        }
        let mut last = DnsError::no_servers(name);
        for at in with_parents(name) {
            let answer = match resolvers.ask(at, RecordType::NS) {
                Ok(answer) => answer,
                // The name itself may be an alias without a target. Its parents cannot be.
                Err(error) if at == name => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let names: Vec<String> =
                answer.own().filter_map(AnswerRecord::name_server).take(MAX_SERVERS).collect();
            if !names.is_empty() {
                return self.servers_of(at, &names, resolvers);
            }
        }
        Err(last)
    }

    /// The name servers of a zone with these names, IPv4 first.
    fn servers_of(
        &self,
        zone: &str,
        names: &[String],
        mut resolvers: NameServers,
    ) -> Result<NameServers, DnsError> {
        let mut addresses = Vec::new();
        let mut last = DnsError::no_servers(zone);
        for kind in [RecordType::A, RecordType::AAAA] {
            for name in names {
                match resolvers.ask(name, kind).and_then(|answer| answer.addresses()) {
                    Ok(found) => addresses.extend(found.iter().map(|ip| SocketAddr::new(*ip, self.port))),
                    Err(error) => last = error,
                }
            }
        }
        addresses.truncate(MAX_SERVERS);
        if addresses.is_empty() { Err(last) } else { Ok(self.servers(addresses, false)) }
    }
}
