//! The table of settings. The command line, the site's table and the tests of the documentation read it.

use std::net::IpAddr;
use std::path::PathBuf;

use super::setting::{Setting, Variable, list, put};
use super::urls::{CONTACT, URL, contact, origin, url};
use petstore_base::error::Expected;
use petstore_base::files::is_location;
#[cfg(feature = "site")]
use petstore_hosting::{host, is_label};

use super::{MOST_CONNECTIONS, MOST_WORKERS, memory};
use petstore_gate::{Listen, Network};

/// Every setting of the executable, in the order of the help text. The API key is not one of them: it comes from the
/// environment alone, because other users can read the command line.
pub const SETTINGS: &[Setting] = &[
    Setting::new("listen", "ADDRESS")
        .help("where to listen: HOST:PORT, PORT on 127.0.0.1, or unix:PATH; port 0 takes a free port")
        .default("127.0.0.1:8080")
        .set(|config, text| put(&mut config.listen, Listen::parse(text), ADDRESS)),
    Setting::new("database", "FILE")
        .help(DATABASE)
        .default("petstore.db")
        .set(|config, text| {
            let path = Some(PathBuf::from(text)).filter(|path| is_location(path));
            put(&mut config.database, path, "the path of a file, without -wal, -shm or -journal at the end")
        }),
    Setting::switch("read-only")
        .help("never write to the database; requests that change something get 503 read_only")
        .set(|config, text| switch(&mut config.read_only, text)),
    Setting::switch("require-database")
        .help("refuse to start if there is no database, instead of creating one")
        .set(|_, text| switch(&mut false, text)),
    Setting::switch("ephemeral")
        .help("serve a temporary database for tests, and delete it at the end")
        .set(|_, text| switch(&mut false, text)),
    Setting::new("max-connections", "NUMBER")
        .help("maximum number of connections; beyond it, a new client replaces the one idle longest, or gets a 503")
        .default("10000")
        .set(|config, text| {
            put(&mut config.max_connections, number(text, MOST_CONNECTIONS), "a number from 1 to 1000000")
        }),
    Setting::new("workers", "NUMBER")
        .help("threads that read from the database")
        .default("half the processors, 1 to 4")
        .set(|config, text| put(&mut config.workers, number(text, MOST_WORKERS), "a number from 1 to 64")),
    Setting::new("client-memory", "SIZE")
        .help("memory for all clients together, such as 16MiB")
        .default("a quarter of the available memory, at most 64MiB")
        .set(|config, text| put(&mut config.client_memory, memory::parse(text), memory::EXPECTED)),
    Setting::new("trusted-proxy", "ADDRESS[/BITS]")
        .help("proxy whose X-Forwarded-For header is trusted; replaces the default")
        .default("the loopback addresses")
        .list()
        .set(|config, text| {
            let networks = list(text, |word| word.parse().ok());
            put(&mut config.trusted_proxies, networks, Network::EXPECTED)
        }),
    Setting::new("allow-origin", "ORIGIN")
        .help("web origin whose scripts may read responses, or *")
        .list()
        .set(|config, text| {
            let expected = "* or an origin such as https://app.example, without a path";
            put(&mut config.allow_origins, list(text, origin), expected)
        }),
    Setting::new("admin", "ADDRESS")
        .help("where to serve metrics and settings to all who can reach it: HOST:PORT, PORT on 127.0.0.1, or unix:PATH")
        .set(|config, text| put(&mut config.admin, Listen::parse(text).map(Some), ADDRESS)),
    Setting::new("admin-host", "NAME")
        .help("name under which the admin address may be asked, besides IP addresses and localhost")
        .list()
        .set(|config, text| {
            let expected = "a host name such as petstore.monitoring.svc, without a port";
            put(&mut config.admin_hosts, list(text, host_name), expected)
        }),
    Setting::switch("experimental")
        .help("also serve the beta and experimental operations, which change, delete, count and find pets")
        .set(|config, text| switch(&mut config.experimental, text)),
    Setting::new("first-key-file", "FILE")
        .help("file for the first API key of a new database: created, unless it has a key"),
    Setting::new("log-format", "FORMAT")
        .help("format of log lines: text, or json for one object per line")
        .default("text")
        .set(|_, text| put(&mut (), ["text", "json"].contains(&text).then_some(()), "text or json")),
    Setting::new("title", "TEXT")
        .help("name of the service, for its pages and the OpenAPI description")
        .default(TITLE)
        .set(|config, text| put(&mut config.title, line(text, 60), "1 to 60 characters in one line")),
    Setting::new("description", "TEXT")
        .help("what the service is, in one or two sentences, for its first page")
        .set(|config, text| put(&mut config.description, line(text, 300), "1 to 300 characters in one line")),
    Setting::new("base-url", "URL")
        .help("public URL of the API, ending in /v1, for the OpenAPI description and the guide")
        .set(|config, text| put(&mut config.base_url, url(text).map(Some), URL)),
    Setting::new("staging-url", "URL")
        .help("URL of the staging API, ending in /v1, for the OpenAPI description")
        .set(|config, text| put(&mut config.staging_url, url(text).map(Some), URL)),
    Setting::new("contact", "URI")
        .help("contact for users of the API, such as mailto:support@example.com, for the OpenAPI description")
        .set(|config, text| put(&mut config.contact, contact(text).map(Some), CONTACT)),
    Setting::new("security-contact", "URI")
        .help("contact for security reports, such as mailto:security@example.com, in security.txt")
        .set(|config, text| put(&mut config.security_contact, contact(text).map(Some), CONTACT)),
    #[cfg(feature = "site")]
    Setting::new("project", "NAME")
        .help("name of the project on the hosting platform")
        .default("petstore")
        .set(|config, text| {
            let name = is_label(text).then(|| text.to_owned());
            put(&mut config.hosting.project, name, "lower-case letters, digits and hyphens")
        }),
    #[cfg(feature = "site")]
    Setting::new("platform-host", "HOST")
        .help("host of the hosting platform, to which DNS records of custom domains point")
        .set(|config, text| {
            put(&mut config.hosting.platform_host, host(text).map(Some), "a name such as sites.example.net")
        }),
    #[cfg(feature = "site")]
    Setting::new("resolver", "ADDRESS[:PORT]")
        .help("DNS server to ask about domains, instead of their own name servers")
        .set(|config, text| {
            let address = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| (ip, 53).into())).ok();
            let expected = "an address such as 192.0.2.53 or 192.0.2.53:5353";
            put(&mut config.hosting.resolver, address.map(Some), expected)
        }),
    #[cfg(feature = "site")]
    Setting::new("certificate-authority", "NAME")
        .help("certificate authority that CAA records must allow, by its name there")
        .default("those of Let's Encrypt and ZeroSSL")
        .list()
        .set(|config, text| {
            let names = list(text, host);
            put(&mut config.hosting.certificate_authorities, names, "a name such as letsencrypt.org")
        }),
];

/// The settings that only the environment has.
pub const VARIABLES: &[Variable] = &[
    #[cfg(feature = "cluster")]
    variable(
        "PETSTORE_DATABASE_PASSWORD",
        "the password of the user of a cluster",
        "",
    ),
    #[cfg(feature = "cluster")]
    variable(
        "PETSTORE_DATABASE_PASSWORD_FILE",
        "a file with the password, in place of the password itself",
        "",
    ),
    variable(
        "PETSTORE_API_KEY",
        "a full API key besides those in the database",
        "",
    ),
    variable(
        "PETSTORE_API_KEY_FILE",
        "a file with that key, in place of the key itself",
        "",
    ),
    variable(
        "PETSTORE_URL",
        "set by serve for its COMMAND: the URL of the service",
        "",
    ),
    variable(
        "PETSTORE_SOCKET",
        "set by serve for its COMMAND: the path of its Unix socket",
        "",
    ),
    variable(
        "RUST_LOG",
        "what to log: off, error, warn, info (also each request) or debug",
        "warnings, errors, starts and stops",
    ),
    variable(
        "TMPDIR",
        "folder for temporary files; where there is none, serve uses that of the database",
        "/tmp",
    ),
];

const fn variable(name: &'static str, help: &'static str, default: &'static str) -> Variable {
    Variable {
        name,
        help,
        default,
    }
}

/// The expected value of `--listen` and `--admin`.
const ADDRESS: &str = "an address such as 127.0.0.1:8080, a port, or unix: and a path";
/// The default of `--title`.
pub(super) const TITLE: &str = "Pet store inventory";
/// The default of `--description`.
pub(super) const DESCRIPTION: &str = "An HTTP API for a pet store's inventory. Every pet you add is on disk before you get the response.";

/// The help text of `--database`.
const DATABASE: &str = if cfg!(feature = "cluster") {
    "the SQLite file; serve creates it if it does not exist, and so do import and key add with --create; or a cluster: \
     rqlite://USER@HOST,HOST,HOST/, or rqlites://USER@HOST,HOST,HOST/?ca=FILE with TLS"
} else {
    "the SQLite file; serve creates it if it does not exist, and so do import and key add with --create"
};

/// Reads a host name. Returns it in lower case and without a trailing dot.
fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    let is_name = name
        .split('.')
        .all(|label| !label.is_empty() && label.bytes().all(is_name_byte));
    is_name.then(|| name.to_ascii_lowercase())
}

/// Sets a switch.
fn switch(field: &mut bool, text: &str) -> Result<(), Expected> {
    put(field, text.parse().ok(), "true or false")
}

fn number(text: &str, most: usize) -> Option<usize> {
    text.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
}

/// A line without control characters and without spaces around it, of at most `most` characters.
fn line(text: &str, most: usize) -> Option<String> {
    let is_line = text.trim() == text && !text.chars().any(char::is_control);
    (is_line && (1..=most).contains(&text.chars().count())).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use petstore_base::error::Expected;

    fn set(flag: &str, text: &str) -> Result<Config, Expected> {
        let mut config = Config::default();
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.flag == flag)
            .unwrap();
        setting.set.unwrap()(&mut config, text).map(|()| config)
    }

    #[test]
    fn text_sets_a_field_or_is_told_what_is_expected() {
        assert_eq!(set("workers", "2").unwrap().workers, 2);
        let refused = set("workers", "0").unwrap_err();
        assert_eq!(refused.to_string(), "a number from 1 to 64");
    }

    #[test]
    fn values_are_accepted() {
        assert!(
            matches!(set("listen", "unix:/a").unwrap().listen, Listen::Unix(path) if path == *"/a")
        );
        assert_eq!(
            set("database", "/a b").unwrap().database,
            PathBuf::from("/a b")
        );
        assert_eq!(set("max-connections", "1").unwrap().max_connections, 1);
        assert_eq!(set("workers", "64").unwrap().workers, 64);
        assert_eq!(
            set("client-memory", "16MiB").unwrap().client_memory,
            16 << 20
        );
        let trusted = set("trusted-proxy", "10.0.0.0/8, ::1")
            .unwrap()
            .trusted_proxies;
        assert_eq!(
            trusted,
            ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]
        );
        let origins = set(
            "allow-origin",
            "https://a.example:8443, http://[::1]:3000,*",
        )
        .unwrap()
        .allow_origins;
        assert_eq!(
            origins,
            ["https://a.example:8443", "http://[::1]:3000", "*"]
        );
        let apps = "capacitor://localhost,tauri://localhost,chrome-extension://abcdefghijklmnopabcdefghijklmnop,\
            moz-extension://8e03978e-40d5-43e8-bc93-6894a57f9324,safari-web-extension://E7A0F8A5-1111-4C5E,\
            https://a.example:443,http://[::1]:80,http://a.example:443,app+x.y-1://h:8080";
        let origins = set("allow-origin", apps).unwrap().allow_origins;
        let expected = apps
            .replacen("https://a.example:443", "https://a.example", 1)
            .replace("]:80,", "],");
        assert_eq!(origins.join(","), expected);
        for text in ["9090", ":9090", "127.0.0.1:9090"] {
            let admin = set("admin", text).unwrap().admin.unwrap();
            assert_eq!(admin.text().as_deref(), Some("127.0.0.1:9090"), "{text}");
        }
        assert_eq!(set("title", "Tim’s <pets>").unwrap().title, "Tim’s <pets>");
        for url in [
            "https://h:1/x/v1",
            "http://[::1]:8080/v1",
            "https://[::1]/v1",
            "https://Pets.example/v1",
        ] {
            assert_eq!(set("base-url", url).unwrap().base_url.unwrap(), url);
        }
    }

    #[test]
    fn contact_is_a_uri() {
        for text in [
            "mailto:security@example.com",
            "https://example.com/security",
            "tel:+1-201-555-0123",
        ] {
            assert_eq!(
                set("security-contact", text)
                    .unwrap()
                    .security_contact
                    .as_deref(),
                Some(text)
            );
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for (flag, text) in [
            ("listen", "80800"),
            ("database", ""),
            ("max-connections", "0"),
            ("max-connections", "-1"),
            ("workers", "65"),
            ("admin", ""),
            ("admin", "99999"),
            ("workers", "two"),
            ("client-memory", "64"),
            ("client-memory", "3MiB"),
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
            ("security-contact", "security@example.com"),
            ("security-contact", "http://example.com/contact"),
            ("security-contact", "mailto:"),
            ("security-contact", "mailto:a@b\nExpires: x"),
            ("trusted-proxy", ""),
            ("trusted-proxy", "10.0.0.1,"),
            ("allow-origin", ""),
            ("allow-origin", "app.example"),
            ("allow-origin", "https://app.example/"),
            ("allow-origin", "https://App.example"),
            ("allow-origin", "https://"),
            ("allow-origin", "null"),
            ("allow-origin", "https://*.example.com"),
            ("allow-origin", "http://a:080"),
            ("allow-origin", "1x://a"),
            ("allow-origin", "://a"),
            ("allow-origin", "Capacitor://localhost"),
            ("allow-origin", "capacitor://localhost/"),
            ("allow-origin", "file://"),
            ("title", ""),
            ("title", " a"),
            ("description", "a\nb"),
        ] {
            assert!(set(flag, text).is_err(), "{flag} {text}");
        }
    }

    #[test]
    fn variables_are_named_like_their_flags() {
        assert_eq!(
            Setting::new("max-connections", "NUMBER").variable(),
            "PETSTORE_MAX_CONNECTIONS"
        );
    }

    #[cfg(feature = "site")]
    fn hosting(flag: &str, text: &str) -> Result<petstore_hosting::Hosting, Expected> {
        set(flag, text).map(|config| config.hosting)
    }

    #[cfg(feature = "site")]
    #[test]
    fn hosts_are_names() {
        let found = hosting("platform-host", "Sites.Example.net.").unwrap();
        assert_eq!(
            found.address().as_deref(),
            Some("petstore.sites.example.net")
        );
        assert!(hosting("platform-host", "1st-2.example").is_ok());
        for text in [
            "",
            "localhost",
            "a..b",
            "-a.b",
            "a_b.c",
            "192.0.2.1",
            "https://a.b",
            "a.b:443",
            "ä.de",
        ] {
            assert!(hosting("platform-host", text).is_err(), "{text}");
        }
        for text in ["", "a.b", "A", "-", "ä"] {
            assert!(hosting("project", text).is_err(), "{text}");
        }
        assert_eq!(
            hosting("certificate-authority", "letsencrypt.org, Pki.Goog")
                .unwrap()
                .certificate_authorities
                .len(),
            2
        );
        assert!(hosting("certificate-authority", "letsencrypt").is_err());
    }

    #[cfg(feature = "site")]
    #[test]
    fn resolver_has_the_port_of_dns_by_default() {
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("[::1]:5353", "[::1]:5353"),
            ("::1", "[::1]:53"),
        ] {
            assert_eq!(
                hosting("resolver", text).unwrap().resolver,
                address.parse().ok()
            );
        }
        assert!(hosting("resolver", "dns.example").is_err());
    }
}
