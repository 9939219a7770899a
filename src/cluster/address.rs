//! The address of a cluster, such as `rqlite://pets@one:4001,two,three/`, and what is wrong with others.
//!
//! Knows no sockets. No message repeats the address, because a password may stand in it.

use std::fmt;
use std::path::PathBuf;

use ureq::http::uri::Authority;

/// The port of rqlite's HTTP interface.
const PORT: u16 = 4001;

const HAS_PASSWORD: &str = "has a password, which other users of this machine can read; put it into the environment \
    variable PETSTORE_DATABASE_PASSWORD, and only the user into the address";

/// The hosts of a cluster, and the user that requests authenticate as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterAddress {
    /// True if the nodes speak TLS.
    pub is_tls: bool,
    /// The user; `None` if the cluster needs none.
    pub user: Option<String>,
    /// Each with its port, such as `one:4001` or `[::1]:4001`. There is at least one.
    pub hosts: Vec<String>,
    /// The file with the certificate authorities that replace those of the system.
    pub ca: Option<PathBuf>,
    /// True if an old rqlite is accepted, although it may lose pets in a power cut.
    pub allows_old: bool,
}

impl ClusterAddress {
    /// Reads `rqlite[s]://[USER@]HOST[:PORT][,HOST[:PORT]…][/][?[allow-old&][ca=FILE]]`.
    ///
    /// # Errors
    /// The fault, as the rest of a sentence that begins with "the address of the database".
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("has no ://")?;
        let is_tls = match scheme {
            "rqlite" => false,
            "rqlites" => true,
            _ => return Err("must begin with rqlite:// or rqlites://, in lower case".to_owned()),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (allows_old, ca) = options(query)?;
        if ca.is_some() && !is_tls {
            return Err("names certificate authorities, but only rqlites:// uses TLS".to_owned());
        }
        // A password may have any character, also one that ends the hosts.
        let (user, hosts) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some(("", _)) => return Err("has no user before the @".to_owned()),
            Some((user, _)) if user.contains(':') => return Err(HAS_PASSWORD.to_owned()),
            Some((user, hosts)) => (Some(user.to_owned()), hosts),
        };
        let (hosts, path) = hosts.split_once('/').unwrap_or((hosts, ""));
        if !path.is_empty() {
            return Err("has a path; only hosts, separated by commas, are allowed".to_owned());
        }
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            is_tls,
            user,
            hosts,
            ca,
            allows_old,
        })
    }
}

/// The address for people, without options.
impl fmt::Display for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let scheme = if self.is_tls { "rqlites" } else { "rqlite" };
        let user = self
            .user
            .as_ref()
            .map(|user| format!("{user}@"))
            .unwrap_or_default();
        write!(f, "{scheme}://{user}{}/", self.hosts.join(","))
    }
}

fn options(query: &str) -> Result<(bool, Option<PathBuf>), String> {
    let (allows_old, rest) = match query.strip_prefix("allow-old") {
        Some(rest) if rest.is_empty() || rest.starts_with('&') => {
            (true, rest.trim_start_matches('&'))
        }
        Some(_) | None => (false, query),
    };
    // The file comes last, so that its name may have any character.
    match rest.strip_prefix("ca=") {
        None if rest.is_empty() => Ok((allows_old, None)),
        Some(file) if !file.is_empty() => Ok((allows_old, Some(file.into()))),
        Some(_) | None => Err(
            "has wrong options after the ?; only allow-old and ca=FILE are allowed, in this order"
                .to_owned(),
        ),
    }
}

/// A host with its port.
fn host(text: &str) -> Result<String, String> {
    // If the host was forgotten, this text may be a password.
    let wrong =
        "has something other than HOST, HOST:PORT or [IPV6]:PORT (1 to 65535) between its commas";
    let authority: Authority = text.parse().map_err(|_| wrong)?;
    let name = authority.host();
    match text
        .strip_prefix(name)
        .and_then(|port| port.strip_prefix(':'))
    {
        None if !name.is_empty() => Ok(format!("{name}:{PORT}")),
        Some(port) if !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_owned())
        }
        Some(_) | None => Err(wrong.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        ClusterAddress::parse(text).unwrap_err()
    }

    #[test]
    fn address_has_a_user_and_hosts_with_their_ports() {
        let address = ClusterAddress::parse("rqlite://pets@one:4001,two,10.0.0.3:4003/").unwrap();
        assert_eq!(address.user.as_deref(), Some("pets"));
        assert_eq!(address.hosts, ["one:4001", "two:4001", "10.0.0.3:4003"]);
        assert!(!address.is_tls && !address.allows_old);
        assert_eq!(
            address.to_string(),
            "rqlite://pets@one:4001,two:4001,10.0.0.3:4003/"
        );
        let address = ClusterAddress::parse("rqlites://[::1]:4005,[fe80::2]").unwrap();
        assert_eq!(
            (address.user, address.hosts),
            (
                None,
                vec!["[::1]:4005".to_owned(), "[fe80::2]:4001".to_owned()]
            )
        );
        assert!(address.is_tls);
    }

    #[test]
    fn options_follow_the_hosts() {
        let address = ClusterAddress::parse("rqlites://one/?allow-old&ca=/a?b&c=d.pem").unwrap();
        assert_eq!(address.ca, Some("/a?b&c=d.pem".into()));
        assert!(address.allows_old);
        assert_eq!(
            ClusterAddress::parse("rqlites://one/?ca=x").unwrap().ca,
            Some("x".into())
        );
        assert!(
            ClusterAddress::parse("rqlite://one?allow-old")
                .unwrap()
                .allows_old
        );
        assert_eq!(address.to_string(), "rqlites://one:4001/");
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, named) in [
            ("rqlite:one", "://"),
            ("RQLITE://one", "lower case"),
            ("rqlite://", "HOST:PORT"),
            ("rqlite://one,,two", "HOST:PORT"),
            ("rqlite://one,", "HOST:PORT"),
            ("rqlite://:4001", "HOST:PORT"),
            ("rqlite://@one", "no user"),
            ("rqlite://one/pets", "path"),
            ("rqlite://one:0", "1 to 65535"),
            ("rqlite://one:", "1 to 65535"),
            ("rqlite://one:65536", "1 to 65535"),
            ("rqlite://::1", "[IPV6]"),
            ("rqlite://[::1", "[IPV6]"),
            ("rqlite://one two", "HOST:PORT"),
            ("rqlite://one/?level=none", "allow-old"),
            ("rqlite://one/?ca=x", "rqlites://"),
            ("rqlites://one/?ca=", "ca=FILE"),
            ("rqlites://one/?allow-oldca=x", "ca=FILE"),
            ("rqlite://one#x", "HOST:PORT"),
        ] {
            let said = refusal(text);
            assert!(said.contains(named), "{text}: {said}");
        }
    }

    #[test]
    fn password_is_refused_and_never_repeated() {
        for text in [
            "rqlite://pets:hush@one",
            "rqlite://pets:hush@two@one/",
            "rqlite://pets:hush/x?@one",
            "rqlite://:hush@one",
            "rqlite://pets:hush",
            "rqlite://pets:hush/",
            "rqlite://pets:hu:hush",
        ] {
            let said = refusal(text);
            assert!(!said.contains("hush"), "{text}: {said}");
        }
        assert!(refusal("rqlite://pets:hush@one").contains("PETSTORE_DATABASE_PASSWORD"));
    }
}
