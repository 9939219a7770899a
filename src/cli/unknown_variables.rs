//! Finds environment variables that are probably misspelt.

use std::cmp::Reverse;

use petstore::{SETTINGS, VARIABLES};

/// Warns of every `PETSTORE_` variable that the program does not know.
pub fn warn_unknown() {
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if let Some(known) = nearest(&name, &value.to_string_lossy()) {
            log::warn!(
                "the environment variable {name} is unknown and has no effect; did you mean {known}?"
            );
        }
    }
}

/// Returns the known variable that is most similar to an unknown one; `None` if it is known, or does not belong to
/// petstore.
fn nearest(name: &str, value: &str) -> Option<String> {
    // Kubernetes sets these variables for services with names such as petstore and petstore-admin.
    let is_foreign = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"]
        .iter()
        .any(|part| name.contains(part))
        || name.ends_with("_PORT") && value.contains("://");
    if !name.starts_with("PETSTORE_") || is_foreign {
        return None;
    }
    let mut known = SETTINGS
        .iter()
        .map(petstore::Setting::variable)
        .collect::<Vec<_>>();
    known.extend(VARIABLES.iter().map(|variable| variable.name.to_owned()));
    if known.iter().any(|known| known == name) {
        return None;
    }
    most_alike(&name.to_ascii_uppercase(), known.into_iter()).map(|(_, nearest)| nearest)
}

/// Returns the word with the longest beginning and end in common with another, and their length.
pub fn most_alike<T: AsRef<str>>(word: &str, known: impl Iterator<Item = T>) -> Option<(usize, T)> {
    let same = |(a, b): &(char, char)| a == b;
    let rated = known.map(|known| {
        let other = known.as_ref();
        let first = word.chars().zip(other.chars()).take_while(same).count();
        let last = word
            .chars()
            .rev()
            .zip(other.chars().rev())
            .take_while(same)
            .count();
        (first + last, known)
    });
    rated.max_by_key(|(alike, known)| (*alike, Reverse(known.as_ref().len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_variable_is_named_for_unknown_ones_alone() {
        for (name, known) in [
            ("PETSTORE_DATABSE", "PETSTORE_DATABASE"),
            ("PETSTORE_WORKER", "PETSTORE_WORKERS"),
            ("PETSTORE_API_KEYS", "PETSTORE_API_KEY"),
            ("PETSTORE_LISTEN_ADDRESS", "PETSTORE_LISTEN"),
            ("PETSTORE_TRUSTED_PROXIES", "PETSTORE_TRUSTED_PROXY"),
            ("PETSTORE_log_format", "PETSTORE_LOG_FORMAT"),
            ("PETSTORE_ADMIN_PORT", "PETSTORE_ADMIN_HOST"),
        ] {
            assert_eq!(nearest(name, "x").as_deref(), Some(known), "{name}");
        }
        for (name, value) in [
            ("PETSTORE_API_KEY_FILE", "/run/key"),
            ("PETSTORE_SERVICE_HOST", "10.0.0.1"),
            ("PETSTORE_PORT", "tcp://10.0.0.1:8080"),
            ("PETSTORE_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("PETSTORE_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("PETSTORE_ADMIN_SERVICE_PORT", "8090"),
            ("PETSTORE_SERVICE_PORT_HTTP", "80"),
            ("PETSTORE_ADMIN_PORT", "tcp://10.0.0.1:8090"),
            ("PETSTORE_DNS_PORT", "udp://10.0.0.1:53"),
            ("PETSTORE_ADMIN_PORT_9090_TCP", "tcp://10.0.0.1:9090"),
            ("PETSTORE_ADMIN_PORT_9090_TCP_PROTO", "tcp"),
            ("MY_PETSTORE_WORKER", "1"),
            ("PETSTORE", "target/release/petstore"),
        ] {
            assert_eq!(nearest(name, value), None, "{name}");
        }
    }
}
