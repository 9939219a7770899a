//! A service for the tests of its clients: a database that goes with it, and failures on request.

use super::Config;
use crate::error::{Error, ErrorKind};

/// A database for tests, which begins with sample pets and goes with the server.
///
/// It stands in the folder for temporary files (`TMPDIR`), and nothing in it is flushed to the disk. If the process is
/// killed, the next server of the same user removes it.
///
/// ```
/// use petstore::{Config, Ephemeral, Server};
///
/// let mut ephemeral = Ephemeral::default();
/// ephemeral.sample = 20;
/// let mut config = Config::default();
/// config.listen = ([127, 0, 0, 1], 0).into();
/// config.api_key = Some("test".to_owned());
/// config.ephemeral = Some(ephemeral);
/// let server = Server::start(config)?;
/// println!("the tests can ask {}", server.address());
/// # Ok::<(), petstore::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Ephemeral {
    /// How many pets the database has at first: the same ones in every run, with the ids from 1 on. Default: 0.
    pub sample: u32,
    /// The part of the requests below `/v1` that fail on purpose, from 0 to 1. A third of them get a 503 before the
    /// work, a third a 503 with the code `outcome_unknown` (only creates; others get the first), and a third lose
    /// their connection. Of the last two kinds half are carried out. The same requests in the same order fail in the
    /// same way in every run. Default: 0.
    pub fail: f64,
}

impl Ephemeral {
    /// # Errors
    /// [`ErrorKind::Config`] if a value cannot be used.
    pub(crate) fn check(&self, config: &Config) -> Result<(), Error> {
        if config.read_only {
            let line = "an ephemeral database cannot only be read";
            return Err(Error::new(ErrorKind::Config("read_only"), line));
        }
        if (0.0..=1.0).contains(&self.fail) {
            return Ok(());
        }
        let line = format!("the share of requests that fail must be from 0 to 1, not {}", self.fail);
        Err(Error::new(ErrorKind::Config("ephemeral"), line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_served_is_refused_with_its_field() {
        let refused = |fail, read_only| {
            let config = Config { read_only, ..Config::default() };
            Ephemeral { sample: 0, fail }.check(&config).err().map(|error| error.kind())
        };
        assert_eq!([refused(0.0, false), refused(1.0, false)], [None, None]);
        for fail in [-0.1, 1.1, f64::NAN] {
            assert_eq!(refused(fail, false), Some(ErrorKind::Config("ephemeral")), "{fail}");
        }
        assert_eq!(refused(0.0, true), Some(ErrorKind::Config("read_only")));
    }
}
