//! Finds the servers to ask: the resolvers, or the authoritative servers of the zone that contains a name.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::answer::AnswerRecord;
use super::error::PORT;
use super::resolv_conf::resolvers_of_the_system;
use super::servers::NameServers;
use super::{DnsError, RecordType, with_parents};

/// The time limit of all questions together.
const WHOLE: Duration = Duration::from_secs(20);
/// The timeout of a server in the first round; it is twice as long in the second.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most name servers of a zone to look up, and the most addresses to ask.
const MAX_SERVERS: usize = 8;

/// Related questions with one deadline.
pub(crate) struct Dns {
    /// The given resolver, or those of the system.
    pub(super) resolvers: Vec<SocketAddr>,
    /// True if the resolver is configured: it gets all questions, and need not be authoritative.
    pub(super) is_given: bool,
    /// The port of the authoritative servers.
    pub(super) port: u16,
    pub(super) patience: Duration,
    pub(super) until: Instant,
}

impl Dns {
    /// Starts the time limit of 20 seconds for all questions together. A configured `resolver` gets all questions.
    /// Without one, the system's resolver finds the authoritative servers of a name, and these get the question.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        let resolvers = resolver.map_or_else(resolvers_of_the_system, |given| vec![given]);
        let (is_given, until) = (resolver.is_some(), Instant::now() + WHOLE);
        Self {
            resolvers,
            is_given,
            port: PORT,
            patience: PATIENCE,
            until,
        }
    }

    /// Returns the resolvers, which query other servers if necessary.
    pub fn resolvers(&self) -> NameServers {
        self.servers(self.resolvers.clone(), true)
    }

    pub(super) fn servers(&self, addresses: Vec<SocketAddr>, resolve: bool) -> NameServers {
        NameServers {
            addresses,
            resolve,
            patience: self.patience,
            until: self.until,
        }
    }

    /// Returns the authoritative servers of the name's zone, or the configured resolver.
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
                // The name itself may be an alias with a broken target. Its parents cannot be aliases, so go on with
                // them.
                Err(error) if at == name => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let names: Vec<String> = answer
                .own()
                .filter_map(AnswerRecord::name_server)
                .take(MAX_SERVERS)
                .collect();
            if !names.is_empty() {
                return self.servers_of(at, &names, resolvers);
            }
        }
        Err(last)
    }

    /// Looks up the addresses of name servers, IPv4 first.
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
                match resolvers
                    .ask(name, kind)
                    .and_then(|answer| answer.addresses())
                {
                    Ok(found) => {
                        addresses.extend(found.iter().map(|ip| SocketAddr::new(*ip, self.port)));
                    }
                    Err(error) => last = error,
                }
            }
        }
        addresses.truncate(MAX_SERVERS);
        if addresses.is_empty() {
            Err(last)
        } else {
            Ok(self.servers(addresses, false))
        }
    }
}
