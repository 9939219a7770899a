//! Names of domains in three forms: input by an operator, A-labels for DNS, and U-labels for people.

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::project::error::{Refusal, RefusalCode};
use crate::project::suffix::registered;
use petstore_base::http::host::without_port;

/// Parses the name of a new domain. `platform` is the host of the hosting platform; names below it cannot be added.
/// Returns the name in A-labels and lower case.
///
/// # Errors
/// [`RefusalCode::INVALID_DOMAIN`].
pub fn parse(text: &str, platform: &str) -> Result<String, Refusal> {
    let given = host_of(text.trim());
    let given = given.strip_suffix('.').unwrap_or(given);
    let shown: String = given.chars().take(80).filter(|c| !c.is_control()).collect();
    let refuse = |why: &str| {
        Err(Refusal::new(
            RefusalCode::INVALID_DOMAIN,
            format!("'{shown}' {why}"),
        ))
    };
    let Ok(name) = to_ascii(given) else {
        return refuse(if given.contains('*') {
            "isn't a domain name. Enter one like pets.example.com, without a wildcard."
        } else if given.len() > 253 || given.split('.').any(|label| label.len() > 63) {
            "isn't a domain name. A name has at most 253 characters, and at most 63 between two dots."
        } else {
            "isn't a domain name. Enter one like pets.example.com: letters, digits, hyphens and dots."
        });
    };
    // Clients parse such a name as an IPv4 address (WHATWG URL standard, 'ends in a number').
    if name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
    {
        return refuse(
            "is an IP address or looks like one. A certificate needs a name such as pets.example.com.",
        );
    }
    if name == platform || name.ends_with(&format!(".{platform}")) {
        return refuse(&format!(
            "belongs to the platform {platform}. Enter a domain that you own."
        ));
    }
    if registered(&name).is_none() {
        return if name.contains('.') {
            let example =
                format!("Nobody can own '{name}'. Enter a name under it, such as example.{name}.");
            Err(Refusal::new(RefusalCode::INVALID_DOMAIN, example))
        } else {
            refuse(&format!(
                "isn't a full domain name. Enter one like {name}.example.com."
            ))
        };
    }
    Ok(name)
}

/// Returns the host of a pasted URL, or other text unchanged. A user before the host is removed only from a URL:
/// `info@example.com` is an email address.
fn host_of(text: &str) -> &str {
    let url = text.split_once("://").map(|(_, rest)| rest);
    let authority = url
        .unwrap_or(text)
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    let host = url.and(authority.rsplit('@').next()).unwrap_or(authority);
    without_port(host)
}

/// Returns the stored form of a name. Text that cannot be a name is returned unchanged; it equals no stored name.
pub fn normal(text: &str) -> String {
    let text = text.trim();
    to_ascii(text.strip_suffix('.').unwrap_or(text)).unwrap_or_else(|()| text.to_owned())
}

/// The name in A-labels and lower case (UTS 46).
fn to_ascii(name: &str) -> Result<String, ()> {
    let ascii = Uts46::new().to_ascii(
        name.as_bytes(),
        AsciiDenyList::STD3,
        Hyphens::CheckFirstLast,
        DnsLength::Verify,
    );
    ascii.map(|name| name.into_owned()).map_err(drop)
}

/// Returns a name in U-labels (RFC 5890, section 2.3.2.1), or unchanged if it has none.
pub fn to_unicode(name: &str) -> String {
    let (unicode, valid) = idna::domain_to_unicode(name);
    if valid.is_ok() {
        unicode
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLATFORM: &str = "sites.example.net";

    fn name(text: &str) -> String {
        parse(text, PLATFORM).unwrap()
    }

    fn refusal(text: &str) -> String {
        parse(text, PLATFORM).unwrap_err().message
    }

    #[test]
    fn names_are_kept_as_dns_has_them() {
        for (text, kept) in [
            ("pets.example.com", "pets.example.com"),
            (" Pets.EXAMPLE.com. ", "pets.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("Bücher。Example", "xn--bcher-kva.example"),
            ("straße.example", "xn--strae-oqa.example"),
            ("example.co.uk", "example.co.uk"),
            (
                "https://user:pw@Pets.example.com.:443/path?query#part",
                "pets.example.com",
            ),
            ("http://pets.example.com/", "pets.example.com"),
            ("ssh://git@pets.example.com", "pets.example.com"),
            ("https://pets.example.com/@user", "pets.example.com"),
            ("pets.example.com/@user", "pets.example.com"),
            ("pets.test", "pets.test"),
            ("pets.local", "pets.local"),
            ("localhost.example.com", "localhost.example.com"),
            ("pets.example.com:8080/path", "pets.example.com"),
            ("//pets.example.com", ""),
            ("a_b.example.com", ""),
        ] {
            assert_eq!(parse(text, PLATFORM).unwrap_or_default(), kept, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_domain_is_named_with_its_fault() {
        let long = format!("{}example.com", "a.".repeat(130));
        let label = format!("{}.com", "a".repeat(64));
        for (text, fault) in [
            ("", "isn't a domain name"),
            ("https:///pets.example.com", "'' isn't a domain name"),
            ("*.example.com", "wildcard"),
            ("192.0.2.1", "IP address"),
            ("[2001:db8::1]", "isn't a domain name"),
            ("2001:db8::1", "isn't a domain name"),
            ("192.0.2", "IP address"),
            ("localhost", "'localhost' isn't a full domain name"),
            ("LOCALHOST.", "isn't a full domain name"),
            ("onion", "isn't a full domain name"),
            ("intranet", "isn't a full domain name"),
            ("test", "isn't a full domain name"),
            ("info@example.com", "'info@example.com' isn't a domain name"),
            (
                "mailto:info@example.com",
                "'mailto:info@example.com' isn't a domain name",
            ),
            ("info@pets.example.com:25/path", "isn't a domain name"),
            ("@example.com", "isn't a domain name"),
            (
                "com",
                "'com' isn't a full domain name. Enter one like com.example.com.",
            ),
            (
                "co.uk",
                "Nobody can own 'co.uk'. Enter a name under it, such as example.co.uk.",
            ),
            ("github.io", "Nobody can own 'github.io'."),
            ("-a.example.com", "digits, hyphens and dots"),
            ("a..example.com", "digits, hyphens and dots"),
            (".example.com", "digits, hyphens and dots"),
            ("xn--a.example.com", "digits, hyphens and dots"),
            ("a\u{0}b.example.com", "digits, hyphens and dots"),
            (&long, "at most 253 characters"),
            (&label, "at most 63 between"),
            (
                "sites.example.net",
                "belongs to the platform sites.example.net. Enter a domain that you own.",
            ),
            (
                "SITES.example.net.",
                "belongs to the platform sites.example.net. Enter a domain that you own.",
            ),
            (
                "pets.sites.example.net",
                "belongs to the platform sites.example.net. Enter a domain that you own.",
            ),
        ] {
            let said = refusal(text);
            assert!(said.contains(fault), "{text}: {said}");
            assert!(said.len() < 350, "{text}: {said}");
        }
        assert_eq!(name("mysites.example.net"), "mysites.example.net");
        assert_eq!(name("example.net"), "example.net");
    }

    #[test]
    fn people_read_unicode() {
        assert_eq!(to_unicode("xn--bcher-kva.example"), "bücher.example");
        assert_eq!(to_unicode("xn--a.example"), "xn--a.example");
    }

    #[test]
    fn longest_name_is_taken_and_a_refused_one_is_shown_without_control_characters() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}.test", "a".repeat(56));
        assert_eq!(
            (longest.len(), parse(&longest, "sites.test").unwrap()),
            (253, longest.clone())
        );
        let said = parse("a\u{1b}[31m b.test", "sites.test")
            .unwrap_err()
            .message;
        assert!(
            said.starts_with("'a[31m b.test' isn't a domain name"),
            "{said}"
        );
    }
}
