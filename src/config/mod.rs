//! The configuration of the service: every setting of the library, with its unit and its default. The command line and
//! the documentation use the table in `settings.rs`.

mod ephemeral;
mod memory;
mod setting;
mod settings;
mod urls;

use std::path::PathBuf;

use crate::app::settings::{ApiSettings, root_of};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::is_location;
use petstore_base::secret::Secret;
use petstore_gate::{Deadlines, Listen, Network, loopback};
use petstore_hosting::Hosting;

pub use ephemeral::Ephemeral;
pub use setting::Setting;
pub use settings::{SETTINGS, VARIABLES};

/// The upper bound of `max_connections`.
const MOST_CONNECTIONS: usize = 1_000_000;
/// The upper bound of `workers`.
const MOST_WORKERS: usize = 64;

/// The configuration of a service. Start from [`Config::new`], and set other values with the methods or in the fields.
///
/// [`Server::start`](crate::Server::start) checks all of it. Texts must have the form that the command line accepts.
///
/// ```
/// let mut config = petstore::Config::new().database("pets.db").listen(([0, 0, 0, 0], 8080));
/// config.trusted_proxies = vec!["10.0.0.0/8".parse()?];
/// # Ok::<(), petstore::Expected>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. Default: `127.0.0.1:8080`.
    pub listen: Listen,
    /// The SQLite file, which is created if it does not exist. Default: `petstore.db`. A relative path is resolved
    /// once, at the start of the server, so a later change of the current folder has no effect.
    ///
    /// While a server runs, your program must not open the file or its `-wal` and `-shm` files on its own, not even to
    /// read or copy them. When it closes such a file, the system drops all of SQLite's locks on it in this process
    /// (`sqlite.org/howtocorrupt.html`, section 2.2). Another process may then write at the same time, and acknowledged
    /// pets are lost. An SQLite library other than the one that petstore is linked with has the same effect (section
    /// 2.2.1).
    ///
    /// Instead, call [`backup`](crate::backup) and read the copy, or call [`export`](crate::export),
    /// [`check`](crate::check) or [`KeyRing`](crate::KeyRing): they know which files the server has open. Other
    /// processes may use the file, as `sqlite3` does.
    ///
    /// With the feature `cluster`, it can be the address of an rqlite cluster:
    /// `rqlite://[USER@]HOST[:PORT],HOST[:PORT]…/`, or `rqlites://` for TLS. The password comes from
    /// `set_database_password`, the environment variable `PETSTORE_DATABASE_PASSWORD`, or the file that
    /// `PETSTORE_DATABASE_PASSWORD_FILE` names. After the
    /// `/` may come `?ca=FILE`, the certificate authorities for TLS in PEM, in place of those of the system;
    /// `?allow-old` to use an rqlite before 9.4, which is slower and may lose acknowledged pets in a power cut; or both:
    /// `?allow-old&ca=FILE`.
    pub database: PathBuf,
    /// The most connections at once. A further client replaces the connection that has been idle longest, or gets a 503
    /// response. From 1 to 1,000,000. Default: 10,000.
    pub max_connections: usize,
    /// The most files that the process may have open. The service reserves some for itself, and the rest limits the
    /// connections. `None`, the default: the limit of the process (`ulimit -n`), which the library does not raise, without
    /// the files that are open at the start. Set it if your program opens more of them later, or runs several services.
    /// An [`Inventory`](crate::Inventory) opens up to seven files, which are not reserved.
    pub open_files: Option<usize>,
    /// The memory budget for all clients together, in bytes: requests that arrive or wait, and responses that are being
    /// sent. When it is used up, connections are evicted. From 4 MiB to 1 GiB. Default: a quarter of the memory that
    /// the process may have (the limits of its cgroups, or the machine's memory), but at least 4 MiB and at most 64
    /// MiB.
    pub client_memory: usize,
    /// The number of threads that read from the database, from 1 to 64. Default: half the processors, at least 1 and
    /// at most 4. The other half is for the thread that serves connections, and for the one that writes.
    pub workers: usize,
    /// The name of the service, on its pages and in the OpenAPI description. From 1 to 60 characters. Default: `Pet
    /// store inventory`.
    pub title: String,
    /// A description of the service, for its first page. From 1 to 300 characters. Default: a sentence on this service.
    pub description: String,
    /// The production URL in the OpenAPI description. Its path ends in `/v1`. Default: none.
    pub base_url: Option<String>,
    /// The staging URL in the OpenAPI description. Its path ends in `/v1`. Default: none.
    pub staging_url: Option<String>,
    /// The proxies whose `X-Forwarded-For` is trusted. The rightmost address in it that is not a trusted proxy counts
    /// as the client's, in limits and in the log. Default: the loopback addresses.
    pub trusted_proxies: Vec<Network>,
    /// The origins whose scripts may read responses in a browser, such as `https://app.example`; `*` stands for
    /// all. Default: none.
    pub allow_origins: Vec<String>,
    /// The address for metrics and for the settings of the project, open to everybody who can reach it. Default:
    /// none.
    pub admin: Option<Listen>,
    /// Further host names that requests to the admin address may have, such as `petstore.monitoring.svc`. IP addresses,
    /// `localhost` and names without a dot are always accepted, and so is this machine's name for metrics. Default:
    /// none.
    pub admin_hosts: Vec<String>,
    /// The hosting of the project. Default: without a platform and without domains.
    pub hosting: Hosting,
    /// One more API key with full scope, in addition to those in the database. Default: none.
    pub api_key: Option<Secret>,
    /// Support contact, shown in the OpenAPI description: a `mailto:`, `https:` or `tel:` URI. Default: none.
    pub contact: Option<String>,
    /// Security contact, published in `/.well-known/security.txt` (RFC 9116): a `mailto:`, `https:` or `tel:` URI.
    /// Default: none.
    pub security_contact: Option<String>,
    /// The deadlines of clients.
    pub deadlines: Deadlines,
    /// Opens the database for reading only: nothing is created, migrated, claimed for this service or checkpointed, and
    /// creates get a 503 response. Other services may serve the same database, and one of them may write. Default:
    /// false.
    pub read_only: bool,
    /// Also serves the operations that are not yet part of the contract. Each has a stability label, `beta` or
    /// `experimental`, and may change. Default: false.
    pub experimental: bool,
    /// For the tests of clients: serves a database that is deleted with the server, instead of `database`. Default: `None`.
    pub ephemeral: Option<Ephemeral>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            database: PathBuf::from("petstore.db"),
            max_connections: 10_000,
            open_files: None,
            client_memory: memory::default(),
            workers: default_workers(std::thread::available_parallelism().map_or(1, usize::from)),
            title: settings::TITLE.to_owned(),
            description: settings::DESCRIPTION.to_owned(),
            base_url: None,
            staging_url: None,
            trusted_proxies: loopback(),
            allow_origins: Vec::new(),
            admin: None,
            admin_hosts: Vec::new(),
            hosting: Hosting::default(),
            api_key: None,
            contact: None,
            security_contact: None,
            deadlines: Deadlines::default(),
            read_only: false,
            experimental: false,
            ephemeral: None,
        }
    }
}

/// Methods for the settings that most programs need. All settings are fields.
impl Config {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`listen`](Self#structfield.listen).
    pub fn listen(self, listen: impl Into<Listen>) -> Self {
        Self {
            listen: listen.into(),
            ..self
        }
    }

    /// Sets [`database`](Self#structfield.database).
    pub fn database(self, file: impl Into<PathBuf>) -> Self {
        Self {
            database: file.into(),
            ..self
        }
    }

    /// Sets [`api_key`](Self#structfield.api_key).
    pub fn api_key(self, key: impl Into<Secret>) -> Self {
        Self {
            api_key: Some(key.into()),
            ..self
        }
    }

    /// Sets [`max_connections`](Self#structfield.max_connections).
    pub fn max_connections(self, max_connections: usize) -> Self {
        Self {
            max_connections,
            ..self
        }
    }

    /// Sets [`ephemeral`](Self#structfield.ephemeral).
    pub fn ephemeral(self, ephemeral: Ephemeral) -> Self {
        Self {
            ephemeral: Some(ephemeral),
            ..self
        }
    }
}

impl Config {
    /// Checks the numbers, the texts and the name of the database.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for the first field that cannot be used.
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        for (field, value, allowed) in [
            (
                "max_connections",
                self.max_connections,
                1..=MOST_CONNECTIONS,
            ),
            ("workers", self.workers, 1..=MOST_WORKERS),
            ("client_memory", self.client_memory, memory::BOUNDS),
        ] {
            if !allowed.contains(&value) {
                let message = format!(
                    "{field} must be from {} to {}",
                    allowed.start(),
                    allowed.end()
                );
                return fail(ErrorKind::Config(field), format!("{message}, not {value}"));
            }
        }
        if !is_location(&self.database) {
            let name = self.database.display();
            let message = format!("the database must be a file, and '{name}' is not one");
            return fail(ErrorKind::Config("database"), message);
        }
        if self
            .ephemeral
            .as_ref()
            .and_then(|ephemeral| ephemeral.fail)
            .is_some_and(|rate| !(0.0..=1.0).contains(&rate))
        {
            return fail(
                ErrorKind::Config("ephemeral.fail"),
                "ephemeral.fail must be a number from 0 to 1",
            );
        }
        self.check_texts()?;
        Ok(self)
    }

    /// Sets each text again as the command line would, which checks it.
    fn check_texts(&mut self) -> Result<(), Error> {
        let list = |texts: &[String]| Some(texts.join(",")).filter(|_| !texts.is_empty());
        for (field, flag, text) in [
            ("title", "title", Some(self.title.clone())),
            ("description", "description", Some(self.description.clone())),
            ("base_url", "base-url", self.base_url.clone()),
            ("staging_url", "staging-url", self.staging_url.clone()),
            ("contact", "contact", self.contact.clone()),
            (
                "security_contact",
                "security-contact",
                self.security_contact.clone(),
            ),
            ("allow_origins", "allow-origin", list(&self.allow_origins)),
            ("admin_hosts", "admin-host", list(&self.admin_hosts)),
            (
                "hosting.project",
                "project",
                Some(self.hosting.project.clone()),
            ),
            (
                "hosting.platform_host",
                "platform-host",
                self.hosting.platform_host.clone(),
            ),
            (
                "hosting.certificate_authorities",
                "certificate-authority",
                list(&self.hosting.certificate_authorities),
            ),
        ] {
            let set = SETTINGS
                .iter()
                .find(|setting| setting.flag == flag)
                .and_then(|setting| setting.set);
            let Some((set, text)) = set.zip(text) else {
                continue;
            };
            set(self, &text).map_err(|expected| {
                Error::new(
                    ErrorKind::Config(field),
                    format!("{field} must be {expected}"),
                )
            })?;
        }
        Ok(())
    }

    /// Returns the public URL of the service, without a trailing slash, if it is known.
    pub(crate) fn root(&self) -> Option<&str> {
        root_of(self.base_url.as_deref()?)
    }

    /// What the interface is told.
    pub(crate) fn api(&self) -> ApiSettings {
        ApiSettings {
            base_url: self.base_url.clone(),
            security_contact: self.security_contact.clone(),
            is_experimental: self.experimental,
        }
    }

    /// Returns the hosts of the base URL and the staging URL, in lower case. The service always accepts requests for
    /// them.
    pub(crate) fn own_hosts(&self) -> impl Iterator<Item = String> {
        [&self.base_url, &self.staging_url]
            .into_iter()
            .flatten()
            .filter_map(|url| urls::host_of(url))
    }
}

fn default_workers(processors: usize) -> usize {
    (processors / 2).clamp(1, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Config)) -> (ErrorKind, String) {
        let mut config = Config::default();
        change(&mut config);
        let error = config.checked().unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn what_cannot_be_served_is_refused_in_a_field() {
        let (kind, line) = refusal(|config| config.workers = 0);
        assert_eq!(kind, ErrorKind::Config("workers"));
        assert_eq!(line, "workers must be from 1 to 64, not 0");
        type Change = fn(&mut Config);
        let changes: &[(&str, Change)] = &[
            ("database", |config| config.database = PathBuf::new()),
            ("database", |config| config.database = ":memory:".into()),
            ("max_connections", |config| config.max_connections = 0),
            ("workers", |config| config.workers = 65),
            ("client_memory", |config| config.client_memory = 64),
            ("title", |config| config.title = String::new()),
            ("description", |config| {
                config.description = "a\nb".to_owned();
            }),
            ("base_url", |config| {
                config.base_url = Some("https://a.example/v1\r\nX: y".to_owned());
            }),
            ("staging_url", |config| {
                config.staging_url = Some("a.example".to_owned());
            }),
            ("contact", |config| {
                config.contact = Some("mailto:a@b.example\n".to_owned());
            }),
            ("security_contact", |config| {
                config.security_contact = Some(String::new());
            }),
            ("allow_origins", |config| {
                config.allow_origins = vec!["*".to_owned(), "https://a.example\r\nX: y".to_owned()];
            }),
            ("allow_origins", |config| {
                config.allow_origins = vec![String::new()];
            }),
            ("admin_hosts", |config| {
                config.admin_hosts = vec!["a b".to_owned()];
            }),
            ("ephemeral.fail", |config| {
                config.ephemeral = Some(failing(f64::NAN));
            }),
            ("ephemeral.fail", |config| {
                config.ephemeral = Some(failing(1.1));
            }),
            ("ephemeral.fail", |config| {
                config.ephemeral = Some(failing(-0.1));
            }),
            #[cfg(feature = "site")]
            ("hosting.project", |config| {
                config.hosting.project = "A".to_owned();
            }),
            #[cfg(feature = "site")]
            ("hosting.platform_host", |config| {
                config.hosting.platform_host = Some("a\nb.example".to_owned());
            }),
            #[cfg(feature = "site")]
            ("hosting.certificate_authorities", |config| {
                config.hosting.certificate_authorities = vec!["a".to_owned()];
            }),
        ];
        for (field, change) in changes {
            assert_eq!(refusal(change).0, ErrorKind::Config(field));
        }
        let (_, line) = refusal(|config| config.title = String::new());
        assert_eq!(line, "title must be 1 to 60 characters in one line");
    }

    fn failing(rate: f64) -> Ephemeral {
        Ephemeral {
            fail: Some(rate),
            ..Ephemeral::default()
        }
    }

    #[test]
    fn texts_of_the_command_line_are_accepted() {
        let mut config = Config {
            ephemeral: Some(failing(1.0)),
            ..Config::default()
        };
        config.base_url = Some("https://a.example/v1".to_owned());
        config.allow_origins = vec!["*".to_owned(), "https://a.example:443".to_owned()];
        let checked = config.checked().unwrap();
        assert_eq!(checked.base_url.as_deref(), Some("https://a.example/v1"));
        assert_eq!(
            checked.allow_origins,
            ["*", "https://a.example"],
            "as browsers write it"
        );
    }

    #[test]
    fn workers_are_half_the_processors_within_bounds() {
        for (processors, workers) in [
            (1, 1),
            (2, 1),
            (3, 1),
            (4, 2),
            (6, 3),
            (8, 4),
            (9, 4),
            (128, 4),
        ] {
            assert_eq!(default_workers(processors), workers, "{processors}");
        }
    }
}
