//! The Public Suffix List (`publicsuffix.org`): which part of a name is a registrar's.

use std::sync::LazyLock;

use publicsuffix::{List, Psl};

use crate::base::http::gunzip;

/// The list, decompressed at first use.
static SUFFIXES: LazyLock<List> = LazyLock::new(|| {
    let list = gunzip(include_bytes!("vendor/public_suffix_list.dat.gz"));
    // The tests would fail without its rules.
    List::from_bytes(&list).unwrap_or_default()
});

/// Returns the registered name above or at a name: a public suffix and one more label. `None` if there is no such label.
/// A suffix that is not in the list has one label. The name has A-labels in lower case.
pub(super) fn registered(name: &str) -> Option<&str> {
    let domain = SUFFIXES.domain(name.as_bytes())?;
    std::str::from_utf8(domain.as_bytes()).ok()
}

/// Returns the registered name above or at a name. A public suffix counts as registered itself.
pub(super) fn zone_of(name: &str) -> &str {
    registered(name).unwrap_or(name)
}

/// Returns true for a registered name, such as `example.co.uk`. It is the apex of a zone unless DNS says otherwise.
pub(super) fn is_apex(name: &str) -> bool {
    zone_of(name) == name
}
