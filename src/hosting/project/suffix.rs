//! The Public Suffix List (`publicsuffix.org`): finds the registered name in a domain.

use std::sync::LazyLock;

use publicsuffix::{List, Psl};

use petstore_base::http::gunzip;

/// The list, decompressed at first use.
static SUFFIXES: LazyLock<List> = LazyLock::new(|| {
    let list = gunzip(include_bytes!("vendor/public_suffix_list.dat.gz"));
    // Cannot fail: the tests parse the same bytes.
    List::from_bytes(&list).unwrap_or_default()
});

/// Returns the registered name of a domain: its public suffix and one more label, such as `example.co.uk` for
/// `www.example.co.uk`; `None` for a public suffix. A suffix that is not in the list has one label. The name must have
/// A-labels in lower case.
pub(crate) fn registered(name: &str) -> Option<&str> {
    let domain = SUFFIXES.domain(name.as_bytes())?;
    std::str::from_utf8(domain.as_bytes()).ok()
}

/// Returns the registered name of a domain. A public suffix counts as registered.
pub(crate) fn zone_of(name: &str) -> &str {
    registered(name).unwrap_or(name)
}

/// Returns whether a name is a registered name, such as `example.co.uk`, which usually is the apex of a zone.
pub(crate) fn is_apex(name: &str) -> bool {
    zone_of(name) == name
}
