//! How to run the service: every setting of the library, with its unit and its default.
//!
//! `settings` is the table that the command line and the documentation read.

mod deadlines;
mod ephemeral;
mod hosting;
mod listen;
mod network;
mod setting;
mod settings;
mod urls;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

pub use deadlines::{Deadline, Deadlines};
pub use ephemeral::Ephemeral;
pub use hosting::Hosting;
pub use listen::{Address, Listen};
pub use network::Network;
pub use setting::{SetField, Setting};
pub use settings::SETTINGS;

/// How to run the service. Start from the default and set the fields that differ.
///
/// ```
/// let mut config = petstore::Config::default();
/// config.database = "pets.db".into();
/// config.trusted_proxies = vec!["10.0.0.0/8".parse()?];
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. Default: `127.0.0.1:8080`.
    pub listen: Listen,
    /// The SQLite file, which is created if there is none. Default: `petstore.db`.
    pub database: PathBuf,
    /// The most clients connected at once. One more takes the place of the longest idle one, or gets a 503 response. Default: 10,000.
    pub max_connections: usize,
    /// The most files that the process may have open. Connections get what the service itself does not need.
    /// `None`, the default: not known, so `max_connections` counts as it is. The library does not ask the
    /// operating system, because it cannot know what else the process opens.
    pub open_files: Option<usize>,
    /// The number of threads that read from the database. Default: half the processors, at least 1 and at most 4.
    /// The other half is for the thread that serves connections, and for the one that writes.
    pub workers: usize,
    /// The production URL in the interface description. Its path ends in `/v1`. Default: none.
    pub base_url: Option<String>,
    /// The staging URL in the interface description. Its path ends in `/v1`. Default: none.
    pub staging_url: Option<String>,
    /// The proxies whose `X-Forwarded-For` is believed: the rightmost address in it that is not one of these is
    /// the client's, in limits and in the log. Default: the loopback addresses.
    pub trusted_proxies: Vec<Network>,
    /// The origins whose scripts may read responses in a browser, such as `https://app.example`; `*` stands for
    /// all. Default: none.
    pub allow_origins: Vec<String>,
    /// The address for metrics and for the settings of the project, open to everybody who can reach it. Default:
    /// none.
    pub admin: Option<SocketAddr>,
    /// How the project is hosted. Default: without a platform and without domains.
    pub hosting: Hosting,
    /// One more API key with full scope, in addition to those in the database. Default: none.
    pub api_key: Option<String>,
    /// How long a client may take.
    pub deadlines: Deadlines,
    /// For the tests of clients: serves a database that goes with the server, instead of `database`. Default: `None`.
    pub ephemeral: Option<Ephemeral>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            database: PathBuf::from("petstore.db"),
            max_connections: 10_000,
            open_files: None,
            workers: default_workers(std::thread::available_parallelism().map_or(1, usize::from)),
            base_url: None,
            staging_url: None,
            trusted_proxies: loopback(),
            allow_origins: Vec::new(),
            admin: None,
            hosting: Hosting::default(),
            api_key: None,
            deadlines: Deadlines::default(),
            ephemeral: None,
        }
    }
}

/// The public URLs of the interface, for its description.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerUrls {
    /// The production URL, ending in `/v1`.
    pub production: Option<String>,
    /// The staging URL, ending in `/v1`.
    pub staging: Option<String>,
}

impl Config {
    pub(crate) fn server_urls(&self) -> ServerUrls {
        ServerUrls { production: self.base_url.clone(), staging: self.staging_url.clone() }
    }

    /// The hosts of the base URL and the staging URL, in lower case. Requests for them are served in any case.
    pub(crate) fn own_hosts(&self) -> impl Iterator<Item = String> {
        [&self.base_url, &self.staging_url].into_iter().flatten().filter_map(|url| urls::host_of(url))
    }
}

/// The addresses of the machine itself, IPv4 and IPv6.
pub(crate) fn loopback() -> Vec<Network> {
    let ipv4 = Network::new(IpAddr::from([127, 0, 0, 0]), 8);
    ipv4.into_iter().chain([IpAddr::V6(Ipv6Addr::LOCALHOST).into()]).collect()
}

fn default_workers(processors: usize) -> usize {
    (processors / 2).clamp(1, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_half_the_processors_within_bounds() {
        for (processors, workers) in [(1, 1), (2, 1), (3, 1), (4, 2), (6, 3), (8, 4), (9, 4), (128, 4)] {
            assert_eq!(default_workers(processors), workers, "{processors}");
        }
    }
}
