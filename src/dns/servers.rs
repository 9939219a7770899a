//! Servers that know the same: where one fails, the next is asked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use simple_dns::RCODE;

use super::exchange::exchange;
use super::message::Response;
use super::trouble::Server;
use super::{Answer, Kind, Trouble};

/// How often each server is asked before it gives up.
const ROUNDS: u32 = 2;

/// Servers that know the same, and the deadline of the inquiry.
pub(crate) struct Servers {
    /// Whom to ask first comes first.
    pub(super) addresses: Vec<SocketAddr>,
    /// They are asked to find out what they do not know. Else only what they know at first hand counts.
    pub(super) resolve: bool,
    /// How long each has in the first round.
    pub(super) patience: Duration,
    pub(super) until: Instant,
}

impl Servers {
    /// Asks for the records of one type. A name that does not exist has none.
    ///
    /// # Errors
    /// The trouble of the server that was asked last.
    pub fn ask(&mut self, name: &str, kind: Kind) -> Result<Answer, Trouble> {
        let since = Instant::now();
        let mut trouble = Trouble::NoServers { name: name.to_owned() };
        for round in 0..ROUNDS {
            for _ in 0..self.addresses.len() {
                let patience = self.patience * (round + 1);
                match self.ask_first(name, kind, patience) {
                    Ok(answer) => return Ok(answer),
                    Err(error) => trouble = error,
                }
                // Who has failed is asked last, this question and the next ones.
                self.addresses.rotate_left(1);
                if Instant::now() >= self.until {
                    return Err(trouble.waited(since));
                }
            }
        }
        Err(trouble.waited(since))
    }

    fn ask_first(&self, name: &str, kind: Kind, patience: Duration) -> Result<Answer, Trouble> {
        let Some(&address) = self.addresses.first() else {
            return Err(Trouble::NoServers { name: name.to_owned() });
        };
        let until = self.until.min(Instant::now() + patience);
        let response = exchange(address, (name, kind), self.resolve, until)?;
        self.judge(Server { address, over_tcp: false }, response)
    }

    fn judge(&self, server: Server, response: Response) -> Result<Answer, Trouble> {
        let failed = |code| Err(Trouble::Failed { server, code });
        match response.rcode {
            // The aliases before a name that does not exist are there (RFC 6604).
            RCODE::NoError | RCODE::NameError if self.resolve || response.authoritative => {
                Ok(response.answer)
            }
            RCODE::NoError | RCODE::NameError => Err(Trouble::Lame { server, name: response.answer.name }),
            RCODE::Refused => Err(Trouble::Refused { server }),
            RCODE::ServerFailure => failed("SERVFAIL"),
            RCODE::FormatError => failed("FORMERR"),
            RCODE::NotImplemented => failed("NOTIMP"),
            _ => failed("a code that does not fit"),
        }
    }
}

impl Trouble {
    /// The same, with the whole time since somebody was asked.
    fn waited(self, since: Instant) -> Self {
        match self {
            Self::Timeout { server, .. } => Self::Timeout { server, waited: since.elapsed() },
            other => other,
        }
    }
}
