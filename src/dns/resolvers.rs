//! Whom to ask: the given resolver, or those of the system.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::exchange::exchange;
use super::message::Question;
use super::resolv_conf::resolvers_of_the_system;
use super::{Answer, RecordType};

/// The longest that all questions together may take.
const WHOLE: Duration = Duration::from_secs(20);
/// How long to wait for one server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Questions that belong together and share one deadline.
pub(crate) struct Dns {
    /// In the order in which to ask them.
    pub(super) resolvers: Vec<SocketAddr>,
    pub(super) patience: Duration,
    pub(super) until: Instant,
}

impl Dns {
    /// Starts the clock: 20 seconds for all questions together.
    pub fn new(resolver: Option<SocketAddr>) -> Self {
        let resolvers = resolver.map_or_else(resolvers_of_the_system, |given| vec![given]);
        Self { resolvers, patience: PATIENCE, until: Instant::now() + WHOLE }
    }

    /// Asks for the records of one type. A name that does not exist has no records.
    ///
    /// # Errors
    /// What the server that was asked last did.
    pub fn ask(&mut self, name: &str, kind: RecordType) -> Result<Answer, String> {
        let question = Question::new(name, kind)?;
        let mut answer = Err("there is no name server to ask".to_owned());
        for _ in 0..self.resolvers.len() {
            let until = self.until.min(Instant::now() + self.patience);
            answer = exchange(self.resolvers[0], &question, until);
            if answer.is_ok() {
                break;
            }
            // A server that failed goes to the end, for this question and the next ones.
            self.resolvers.rotate_left(1);
        }
        answer
    }
}
