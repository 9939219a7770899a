//! A list of equivalent servers: if one fails, the next is asked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use simple_dns::RCODE;

use super::exchange::exchange;
use super::message::{DnsResponse, Question};
use super::{DnsAnswer, DnsError, RecordType};

/// The most times that each server is asked.
const ROUNDS: u32 = 2;

/// Equivalent servers.
pub(crate) struct NameServers {
    /// The first is asked first.
    pub(super) addresses: Vec<SocketAddr>,
    /// True for resolvers, which may query other servers; otherwise only authoritative responses count.
    pub(super) resolve: bool,
    /// The timeout of a server in the first round; it is twice as long in the second.
    pub(super) patience: Duration,
    /// The deadline of all questions together.
    pub(super) until: Instant,
}

impl NameServers {
    /// Asks for the records of one type. A name that does not exist has no records.
    ///
    /// # Errors
    /// The [`DnsError`] with the server that was asked last.
    pub fn ask(&mut self, name: &str, kind: RecordType) -> Result<DnsAnswer, DnsError> {
        let mut last = DnsError::no_servers(name);
        for round in 1..=ROUNDS {
            for _ in 0..self.addresses.len() {
                let server = self.addresses[0];
                let until = self.until.min(Instant::now() + self.patience * round);
                let question = Question::new(name, kind, self.resolve)?;
                match exchange(server, &question, until)
                    .and_then(|response| self.judge(server, response))
                {
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

    fn judge(&self, server: SocketAddr, response: DnsResponse) -> Result<DnsAnswer, DnsError> {
        // Some forwarders recurse without setting the flag RA, so a response with records counts anyway.
        let cannot_know = self.resolve && !response.recursive && !response.authoritative;
        let is_empty = response.answer.records.is_empty();
        let what = match response.rcode {
            RCODE::NoError | RCODE::Refused if cannot_know && is_empty => {
                " does not recurse, as a resolver must; it knows its own zones only"
            }
            // NXDOMAIN concerns the last name of a chain; the aliases before it exist (RFC 6604).
            RCODE::NoError | RCODE::NameError if self.resolve || response.authoritative => {
                return Ok(response.answer);
            }
            RCODE::NoError | RCODE::NameError => {
                &format!(" is not an authority of {}", response.answer.name)
            }
            RCODE::Refused => " refuses to answer",
            RCODE::ServerFailure => " failed to answer (SERVFAIL)",
            code => &format!(" failed to answer ({code:?})"),
        };
        Err(DnsError::of(server, what))
    }
}
