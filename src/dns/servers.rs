//! A list of equivalent servers: if one fails, the next is asked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use simple_dns::RCODE;

use super::error::NameServer;
use super::exchange::exchange;
use super::message::Response;
use super::{Answer, DnsError, RecordType};

/// How often each server is asked.
const ROUNDS: u32 = 2;

/// Equivalent servers, and the deadline of the inquiry.
pub(crate) struct NameServers {
    /// In the order in which to ask them.
    pub(super) addresses: Vec<SocketAddr>,
    /// Whether they may query others. If not, only authoritative responses count.
    pub(super) resolve: bool,
    /// How long to wait for each in the first round.
    pub(super) patience: Duration,
    pub(super) until: Instant,
}

impl NameServers {
    /// Asks for the records of one type. A name that does not exist has no records.
    ///
    /// # Errors
    /// The [`DnsError`] with the server that was asked last.
    pub fn ask(&mut self, name: &str, kind: RecordType) -> Result<Answer, DnsError> {
        let since = Instant::now();
        let mut last = DnsError::NoServers { name: name.to_owned() };
        for round in 1..=ROUNDS {
            for _ in 0..self.addresses.len() {
                let server = NameServer { address: self.addresses[0], over_tcp: false };
                let until = self.until.min(Instant::now() + self.patience * round);
                let response = exchange(server, (name, kind), self.resolve, (since, until));
                match response.and_then(|response| self.judge(server, response)) {
                    Ok(answer) => return Ok(answer),
                    Err(error) => last = error,
                }
                // A server that failed goes to the end, for this question and the next ones.
                self.addresses.rotate_left(1);
                if Instant::now() >= self.until {
                    return Err(last);
                }
            }
        }
        Err(last)
    }

    fn judge(&self, server: NameServer, response: Response) -> Result<Answer, DnsError> {
        let failed = |code| Err(DnsError::Failed { server, code });
        // Some forwarders recurse without the flag RA, so an answer counts even so.
        let cannot_know = self.resolve && !response.recursive && !response.authoritative;
        match response.rcode {
            RCODE::NoError if cannot_know && response.answer.records.is_empty() => {
                Err(DnsError::NotRecursive { server })
            }
            // NXDOMAIN concerns the last name of a chain; the aliases before it exist (RFC 6604).
            RCODE::NoError | RCODE::NameError if self.resolve || response.authoritative => {
                Ok(response.answer)
            }
            RCODE::NoError | RCODE::NameError => Err(DnsError::Lame { server, name: response.answer.name }),
            RCODE::Refused if cannot_know => Err(DnsError::NotRecursive { server }),
            RCODE::Refused => Err(DnsError::Refused { server }),
            RCODE::ServerFailure => failed("SERVFAIL"),
            RCODE::FormatError => failed("FORMERR"),
            RCODE::NotImplemented => failed("NOTIMP"),
            _ => failed("a code that does not fit"),
        }
    }
}
