//! A service for the tests of its clients: a temporary database, and injected failures and delays.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A database for tests, which begins with sample pets and is deleted with the server.
///
/// It is in the folder for temporary files (`TMPDIR`), and nothing in it is flushed to the disk. If the process is
/// killed, the file remains.
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
    /// The number of pets in the database at the start: the same ones in every run, with ids from 1. Default: 0.
    pub sample: u32,
    /// The fraction of the requests below `/v1` that fail on purpose, from 0 to 1. A third of the failures are a 503
    /// for a request that was not carried out; a third are a 503 with the code `outcome_unknown` for a write, and an
    /// ordinary 503 for a read; a third close the connection without a response. Half of the requests with one of the
    /// last two failures are carried out. The same requests in the same order fail in the same way in every run.
    ///
    /// A request with `Prefer: code=503` (RFC 7240) fails with this status or error code and is not carried out. 0 makes
    /// only these fail. Default: `None`, which ignores them too.
    pub fail: Option<f64>,
    /// The delay of responses to requests below `/v1`. Each delay is drawn from this range, in the same way in every
    /// run. A delayed response holds up no other request. Default: `None`.
    pub delay: Option<RangeInclusive<Duration>>,
}
