//! Every setting: its unit, its default, its environment variable and its check.

mod hosting;
mod listen;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

pub use hosting::Hosting;
pub use listen::{Address, Listen};

/// How to run the service.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen; `127.0.0.1:8080`.
    pub listen: Listen,
    /// The SQLite file; made where there is none.
    pub database: PathBuf,
    /// Clients connected at once; one more gets a 503.
    pub max_connections: usize,
    /// How many files the process may have open, of which the connections get what the service itself does
    /// not need; `None`: not known, and `max_connections` is taken as it is. The library does not ask the
    /// operating system, as it cannot tell what else the process opens.
    pub open_files: Option<usize>,
    /// Threads that read from the database; half the processors, but at least 1 and at most 4. Each has a
    /// lane of its own, and the gate and tiny_http's threads need processors too: on two, a second worker
    /// makes them wait for each other.
    pub workers: usize,
    /// The production address in the interface description; its path ends in `/v1`.
    pub base_url: Option<String>,
    /// The staging address in the interface description; its path ends in `/v1`.
    pub staging_url: Option<String>,
    /// Proxies whose `X-Forwarded-For` counts: the rightmost address in it that is not one of these is the
    /// client's, in limits and in the log. Loopback.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins whose scripts may read responses in a browser, such as `https://app.example`; `*`: all. None.
    pub allow_origins: Vec<String>,
    /// Where metrics are served, to whoever can reach it; `None`: nowhere.
    pub admin: Option<SocketAddr>,
    /// How the project is hosted, and at which domains.
    pub hosting: Hosting,
    /// One more API key beside those in the database.
    pub api_key: Option<String>,
    /// Where the executable writes the key that it makes for a new database; never an existing file. `None`:
    /// to standard output, if that is a terminal. The library makes no key by itself.
    pub first_key_file: Option<PathBuf>,
    /// How the executable writes its log; text. The library leaves that to the program that embeds it.
    pub log_format: LogFormat,
    /// How long a client may take.
    pub deadlines: Deadlines,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// Time, level, target and message, for people.
    #[default]
    Text,
    /// A JSON object, for programs.
    Json,
}

/// Where the interface is served, for those who read its description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    /// The production address, ending in `/v1`.
    pub production: Option<String>,
    /// The staging address, ending in `/v1`.
    pub staging: Option<String>,
}

impl Config {
    pub(crate) fn servers(&self) -> Servers {
        Servers { production: self.base_url.clone(), staging: self.staging_url.clone() }
    }
}

/// How long each part of a conversation may take in all, however the bytes drip.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlines {
    /// From the first byte of a request to the end of its head; 10 s.
    pub head: Duration,
    /// From the end of the head to the end of the body; 30 s.
    pub body: Duration,
    /// Until a request that waits for room is answered with 503; 10 s.
    pub lane: Duration,
    /// Until a request that is being carried out is answered with 503, for want of another answer; 60 s.
    pub answer: Duration,
    /// Until the client has taken the response; 30 s.
    pub response: Duration,
    /// Until the first byte of the next request; 60 s.
    pub idle: Duration,
    /// Until the client closes after its last response; 2 s.
    pub linger: Duration,
    /// Until the service ends after it was told to, with requests unfinished; 10 s.
    pub drain: Duration,
}

/// A deadline as clients meet it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// The member of [`Deadlines`].
    pub name: &'static str,
    /// How long.
    pub most: Duration,
    /// The phase that it bounds.
    pub span: &'static str,
    /// What happens when it passes.
    pub then: &'static str,
}

impl Deadlines {
    /// All of them, for people.
    pub fn table(&self) -> [Deadline; 8] {
        let row = |name, most, span, then| Deadline { name, most, span, then };
        [
            row("head", self.head, "reading the head of a request, from its first byte", "408"),
            row("body", self.body, "reading the body, from the end of the head", "408"),
            row(
                "lane",
                self.lane,
                "waiting for a thread, once the request is complete",
                "503; it was not carried out",
            ),
            row("answer", self.answer, "handling the request", "503; for a create, `outcome_unknown`"),
            row("response", self.response, "sending the response", CLOSED),
            row("idle", self.idle, "idle between requests", CLOSED),
            row("linger", self.linger, "after the last response, until the client closes its side", CLOSED),
            row(
                "drain",
                self.drain,
                "after SIGTERM, finishing the requests that have begun",
                "the service ends without them",
            ),
        ]
    }
}

const CLOSED: &str = "the connection is closed";

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            lane: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            response: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(10),
        }
    }
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
            first_key_file: None,
            log_format: LogFormat::Text,
            deadlines: Deadlines::default(),
        }
    }
}

/// The addresses of the machine itself, IPv4 and IPv6.
pub(crate) fn loopback() -> Vec<IpNet> {
    let networks = [(IpAddr::from([127, 0, 0, 0]), 8), (IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), 128)];
    networks.into_iter().filter_map(|(address, bits)| IpNet::new(address, bits).ok()).collect()
}

fn default_workers(processors: usize) -> usize {
    (processors / 2).clamp(1, 4)
}

/// One setting of the command line and of the environment.
pub struct Setting {
    /// The flag without its dashes.
    pub flag: &'static str,
    /// What stands for the value in the help text.
    pub value: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
    /// What counts where it is not given; empty: nothing.
    pub default: &'static str,
    /// Takes the value, or says what is expected of it. That of a flag given more than once is all its
    /// values, with commas between them, as the variable has it.
    pub set: fn(&mut Config, &str) -> Result<(), &'static str>,
    /// Whether the flag may be given more than once.
    pub is_list: bool,
}

/// Every setting but the API key, which is no flag: the command lines of others can be read.
pub const SETTINGS: &[Setting] =
    if cfg!(feature = "site") { ALL } else { ALL.split_at(ALL.len() - hosting::SETTINGS).0 };

/// The settings of the site come last.
const ALL: &[Setting] = &[
    Setting {
        flag: "listen",
        value: "ADDRESS",
        help: "where to listen, HOST:PORT or unix:PATH; port 0 takes a free one",
        default: "127.0.0.1:8080",
        set: |config, text| {
            let expected = "an address such as 127.0.0.1:8080, or unix: and a path";
            config.listen = Listen::parse(text).ok_or(expected)?;
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "database",
        value: "FILE",
        help: "the SQLite file, made where there is none",
        default: "petstore.db",
        set: |config, text| {
            config.database = PathBuf::from(text);
            if text.is_empty() { Err("a file name") } else { Ok(()) }
        },
        is_list: false,
    },
    Setting {
        flag: "max-connections",
        value: "NUMBER",
        help: "clients connected at once; one more gets a 503",
        default: "10000",
        set: |config, text| {
            config.max_connections = number(text, 1_000_000).ok_or("a number from 1 to 1000000")?;
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "workers",
        value: "NUMBER",
        help: "threads that read from the database",
        default: "half the processors, 1 to 4",
        set: |config, text| {
            config.workers = number(text, 64).ok_or("a number from 1 to 64")?;
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "trusted-proxy",
        value: "ADDRESS[/BITS]",
        help: "proxy whose X-Forwarded-For names the client, in place of the default",
        default: "the loopback addresses",
        set: |config, text| {
            let network =
                |word: &str| word.parse().ok().or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from));
            let networks: Option<Vec<IpNet>> = text.split(',').map(|word| network(word.trim())).collect();
            config.trusted_proxies = networks.ok_or("an address such as 10.0.0.1 or 10.0.0.0/8")?;
            Ok(())
        },
        is_list: true,
    },
    Setting {
        flag: "allow-origin",
        value: "ORIGIN",
        help: "origin whose scripts may read responses in a browser, or *",
        default: "",
        set: |config, text| {
            let origins: Option<Vec<String>> = text.split(',').map(|word| origin(word.trim())).collect();
            config.allow_origins =
                origins.ok_or("* or an origin such as https://app.example, without a path")?;
            Ok(())
        },
        is_list: true,
    },
    Setting {
        flag: "admin",
        value: "ADDRESS",
        help: "where to serve metrics and settings, PORT on the loopback address or HOST:PORT, to whoever can reach it",
        default: "",
        set: |config, text| {
            let text = text.strip_prefix(':').unwrap_or(text);
            let port = text.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port)));
            let named = || text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
            config.admin =
                Some(port.or_else(named).ok_or("a port such as 9090, or an address with its port")?);
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "first-key-file",
        value: "FILE",
        help: "new file for the API key that is made for a new database",
        default: "",
        set: |config, text| {
            config.first_key_file = Some(PathBuf::from(text));
            if text.is_empty() { Err("a file name") } else { Ok(()) }
        },
        is_list: false,
    },
    Setting {
        flag: "log-format",
        value: "FORMAT",
        help: "how log lines look: text, or json for an object a line",
        default: "text",
        set: |config, text| {
            config.log_format = match text {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return Err("text or json"),
            };
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "base-url",
        value: "URL",
        help: "production address in the interface description, ending in /v1",
        default: "",
        set: |config, text| {
            config.base_url = Some(url(text)?);
            Ok(())
        },
        is_list: false,
    },
    Setting {
        flag: "staging-url",
        value: "URL",
        help: "staging address in the interface description, ending in /v1",
        default: "",
        set: |config, text| {
            config.staging_url = Some(url(text)?);
            Ok(())
        },
        is_list: false,
    },
    hosting::PROJECT,
    hosting::PLATFORM_HOST,
    hosting::RESOLVER,
    hosting::CERTIFICATE_AUTHORITY,
];

impl Setting {
    /// The environment variable of the same name.
    pub fn variable(&self) -> String {
        format!("PETSTORE_{}", self.flag.to_uppercase().replace('-', "_"))
    }
}

fn number(text: &str, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| (1..=most).contains(number))
}

/// A scheme, a host and a port where there is one, as browsers write them (RFC 6454, section 6.1).
fn origin(text: &str) -> Option<String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_origin = host.is_some_and(is_authority) && !text.bytes().any(|b| b.is_ascii_uppercase());
    (text == "*" || is_origin).then(|| text.to_owned())
}

/// A host, and a port where there is one (RFC 3986, section 3.2), without a user: it stands in header fields
/// and on public pages.
fn is_authority(text: &str) -> bool {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'));
    let (host, port) = port.map_or((text, None), |(host, port)| (host, Some(port)));
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let is_name = |host: &str| {
        let is_host_byte = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        host.bytes().all(is_host_byte) && host.bytes().any(|b| b.is_ascii_alphanumeric())
    };
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = address.map_or_else(|| is_name(host), |address| address.parse::<Ipv6Addr>().is_ok());
    is_host && port.is_none_or(is_port)
}

fn url(text: &str) -> Result<String, &'static str> {
    let expected = "an http or https address whose path ends in /v1";
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or(expected)?;
    let (authority, path) = rest.split_once('/').ok_or(expected)?;
    let is_plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/".contains(&b));
    let is_ours = path == "v1" || path.ends_with("/v1");
    if is_authority(authority) && is_plain && is_ours { Ok(text.to_owned()) } else { Err(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(flag: &str, text: &str) -> Result<Config, &'static str> {
        let mut config = Config::default();
        let setting = SETTINGS.iter().find(|setting| setting.flag == flag).unwrap();
        (setting.set)(&mut config, text).map(|()| config)
    }

    #[test]
    fn values_are_taken() {
        assert!(matches!(set("listen", "unix:/a").unwrap().listen, Listen::Unix(path) if path == *"/a"));
        assert_eq!(set("database", "/a b").unwrap().database, PathBuf::from("/a b"));
        assert_eq!(set("max-connections", "1").unwrap().max_connections, 1);
        assert_eq!(set("workers", "64").unwrap().workers, 64);
        let trusted = set("trusted-proxy", "10.0.0.0/8, ::1").unwrap().trusted_proxies;
        assert_eq!(trusted, ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        let origins =
            set("allow-origin", "https://a.example:8443, http://[::1]:3000,*").unwrap().allow_origins;
        assert_eq!(origins, ["https://a.example:8443", "http://[::1]:3000", "*"]);
        for text in ["9090", ":9090", "127.0.0.1:9090"] {
            assert_eq!(set("admin", text).unwrap().admin, Some(([127, 0, 0, 1], 9090).into()));
        }
        for url in ["https://h:1/x/v1", "http://[::1]:8080/v1", "https://[::1]/v1", "https://Pets.example/v1"]
        {
            assert_eq!(set("base-url", url).unwrap().base_url.unwrap(), url);
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for (flag, text) in [
            ("listen", "8080"),
            ("listen", "127.0.0.1"),
            ("listen", "127.0.0.1:99999"),
            ("listen", ""),
            ("database", ""),
            ("first-key-file", ""),
            ("log-format", "xml"),
            ("max-connections", "0"),
            ("max-connections", "-1"),
            ("workers", "65"),
            ("admin", ""),
            ("admin", "99999"),
            ("workers", "two"),
            ("base-url", "https://h"),
            ("base-url", "ftp://h/v1"),
            ("base-url", "https:///v1"),
            ("base-url", "https://a;sandbox/v1"),
            ("base-url", "https://*.example/v1"),
            ("base-url", "https://a,b/v1"),
            ("base-url", "https://user:secret@h/v1"),
            ("base-url", "https://h:99999/v1"),
            ("base-url", "https://h:/v1"),
            ("base-url", "https://[zz]/v1"),
            ("base-url", "https://h/$(id)/v1"),
            ("base-url", "https://h/xv1"),
            ("allow-origin", "https://.:80"),
            ("allow-origin", "https://[::1"),
            ("staging-url", "https://h/\"/v1"),
            ("staging-url", ""),
            ("trusted-proxy", ""),
            ("trusted-proxy", "proxy.example"),
            ("trusted-proxy", "10.0.0.0/33"),
            ("trusted-proxy", "10.0.0.1,"),
            ("allow-origin", ""),
            ("allow-origin", "app.example"),
            ("allow-origin", "https://app.example/"),
            ("allow-origin", "https://App.example"),
            ("allow-origin", "https://"),
            ("allow-origin", "null"),
        ] {
            assert!(set(flag, text).is_err(), "{flag} {text}");
        }
    }

    #[test]
    fn workers_are_half_the_processors_within_bounds() {
        for (processors, workers) in [(1, 1), (2, 1), (3, 1), (4, 2), (6, 3), (8, 4), (9, 4), (128, 4)] {
            assert_eq!(default_workers(processors), workers, "{processors}");
        }
    }

    #[test]
    fn variables_are_named_like_their_flags() {
        let names: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
        assert_eq!(names[2], "PETSTORE_MAX_CONNECTIONS");
    }
}
