//! A service for the tests of its clients: a temporary database, and failures and delays on request.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A database for tests, which begins with sample pets and is deleted with the server.
///
/// It stands in the folder for temporary files (`TMPDIR`), and nothing in it is flushed to the disk. If the process is
/// killed, it stays there.
///
/// ```
/// use petstore::{Config, Ephemeral, Server};
///
/// let mut ephemeral = Ephemeral::default();
/// ephemeral.sample = 20;
/// let config = Config::new().listen(([127, 0, 0, 1], 0)).api_key("test").ephemeral(ephemeral);
/// let server = Server::start(config)?;
/// println!("the tests can ask {}", server.address());
/// # Ok::<(), petstore::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Ephemeral {
    /// How many pets the database has at first: the same ones in every run, with the ids from 1 on. Default: 0.
    pub sample: u32,
    /// The fraction of the requests below `/v1` that fail on purpose, from 0 to 1. A third of them get a 503 before the
    /// work, a third a 503 with the code `outcome_unknown` (only creates; others get the first), and a third lose
    /// their connection. Of the last two kinds half are carried out. The same requests in the same order fail in the
    /// same way in every run. Default: 0.
    pub fail: f64,
    /// How long the finished responses to requests below `/v1` are held back. Each delay is drawn from this range, in the
    /// same way in every run. Requests that come meanwhile do not wait. Default: `None`.
    pub delay: Option<RangeInclusive<Duration>>,
}
